"""Load the same vectors in spaCy and in sentence-transformers, whichever is installed."""

import importlib.util
import tempfile
from pathlib import Path

import dcme_w2v as dw

lines = ["The king speaks to the queen", "A man and a woman walk home", "The queen reads"] * 200
vectors = dw.train(lines, tokenize="words", dim=16, min_count=1, threads=1)
folder = Path(tempfile.mkdtemp())

dw.save_sentence_model(vectors, folder / "model", tokenize="words")
print("folder for sentence-transformers and model2vec:", *sorted(
    path.name for path in (folder / "model").iterdir()
))  # fmt: skip
if importlib.util.find_spec("sentence_transformers"):
    from sentence_transformers import SentenceTransformer

    print(SentenceTransformer(str(folder / "model")).encode(["The queen speaks"]).shape)

if importlib.util.find_spec("spacy"):
    import spacy

    language = spacy.blank("en")
    for word in vectors:
        language.vocab.set_vector(word, vectors[word])
    print(language("king queen")[0].similarity(language("king queen")[1]))
