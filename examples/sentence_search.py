"""Search paragraphs by meaning: sentence vectors in an index of usearch.

The text is Python's language reference, which every Python has.
"""

from pydoc_data.topics import topics

import numpy as np
from usearch.index import Index

import dcme_w2v as dw

parts = [" ".join(part.split()) for text in topics.values() for part in text.split("\n\n")]
paragraphs = list(dict.fromkeys(part for part in parts if part[-1:] == "." and len(part) > 60))

# So little text needs more epochs and fewer dimensions than the defaults.
options = {"dim": 50, "window": 10, "epochs": 30, "min_count": 2}
vectors = dw.train(paragraphs, tokenize="words", threads=1, **options)
encoder = dw.SentenceEncoder(vectors, tokenize="words", pooling="usif")
rows = encoder.fit_transform(paragraphs)

index = Index(ndim=rows.shape[1], metric="cos")
index.add(np.arange(len(rows)), rows)
for query in [
    "What happens when no exception handler is found?",
    "How are arguments passed to a function?",
]:
    print(f"\n{query}")
    for found in index.search(encoder.transform([query])[0], 3):
        print(f"{1 - found.distance:.2f}  {paragraphs[int(found.key)][:90]}")
