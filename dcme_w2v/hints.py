"""Translate names in gensim, word2vec.c, fastText and scikit-learn to this package's names.

A name of another program is an error whose message suggests the name here; there are no aliases.
"""

import functools
import re
from collections.abc import Iterable

MIN_SIMILARITY = 0.66  # minimum spelling similarity (0 to 1) of a suggested name
MAX_COMPARED = 64  # maximum number of characters per name that are compared

# Maps options of other programs to options of this program; | separates several replacements.
# If there are several replacements, messages suggest the first one that the command supports.
_OPTIONS = """
size vector-size embedding-size: --dim
iter n-iter epoch max-iter: --epochs|--iterations|--rounds
alpha start-alpha learning-rate eta eta0 step-size: --lr|--l2
workers thread num-threads n-jobs: --threads
ws window-size: --window
shrink-windows: --window-mode
sg skipgram skip-gram: --model=skipgram
cbow: --model=cbow
hs loss: --objective
neg negatives negative-samples: --negative
ns-exponent: --noise-power
t subsample: --sample
max-final-vocab max-vocab-size: --max-vocab
binary: --format
bucket: --buckets|--hashing
minn maxn: --subwords=MIN-MAX
word-ngrams ngram-range n-gram ngram: --ngrams
pretrained-vectors: --init
save-output: --output-tables
save-vocab: the command vocab
autotune-validation autotune-duration: --tune
merge-context-vectors sum-context ensemble: --output-vectors=sum
callbacks compute-loss: --progress
trim-rule: --read-vocab
verbose debug: --quiet|--progress
random-state: --seed
c penalty: --l2 (1 / (C * rows))
n-components n-clusters: --latent|--clusters
tol: --tolerance
fit-intercept: --bias
restrict-vocab clip-end: --limit
n topn top-n topk top-k words: -k
write-header: --header
input corpus-file corpus-iterable: CORPUS, the first argument
cbow-mean: omit it: CBOW always takes the mean
classes: the command classes
documents dm dbow-words dm-mean infer-vector dv: dw.SCDV or dw.SentenceEncoder
multi-label multilabel label-separator: omit it: a document may have several labels
lower lowercase lower-case: --tokenize=words|omit it: text is in lower case
"""

# Maps commands of other programs to commands of this program; messages suggest the first that
# exists.
_COMMANDS = """
nn nearest most-similar distance get-nearest-neighbors similar: neighbors
word-analogy odd-one-out doesnt-match: neighbors
analogy analogies compute-accuracy evaluate-word-analogies accuracy: eval analogies
evaluate-word-pairs similarity: eval similarity
sts: eval sts
word2phrase phraser: phrases
skipgram: train --model skipgram
cbow glove word2vec word2-vec fast-text fasttext train-unsupervised build-vocab: train
train learn: fit
fit supervised train-supervised: classify train|train
predict predict-prob get-labels: classify predict|predict
test score evaluate: classify test|test
quantize shrink compress: classify shrink
vocab-count: vocab
print-word-vectors: convert
print-sentence-vectors get-sentence-vector embed embeddings sentence-vectors: encode
topics lda lda-model: scdv topics
query retrieve bm25: search
cluster clusters kmeans k-means: latent fit --unsupervised, or classes for words
doc2vec: scdv fit
model2vec sentence-transformers: convert --to sentence-transformers
help: --help
version: --version
"""

# Maps functions, methods and classes of other packages to their equivalents in this package.
_ATTRIBUTES = """
most-similar nn distance get-nearest-neighbors similar-by-word similar-by-vector \
neighbors: v.most_similar(word)
word-analogy analogy analogies get-analogies: v.most_similar([("king", 1), ("man", -1)])
similarity: v.similarity(word, other)
compute-accuracy evaluate-word-analogies accuracy: dw.eval_analogies(v, file)
evaluate-word-pairs: dw.eval_similarity(v, file)
phraser word2phrase: dw.phrases
glove word2vec word2-vec fast-text fasttext train-unsupervised build-vocab cbow fit \
train: dw.train(corpus)
skipgram: dw.train(corpus, model="skipgram")
supervised train-supervised predict predict-prob get-labels test classify classifier \
tfidf-vectorizer linear-svc logistic-regression: dw.TextClassifier
quantize shrink: dw.TextClassifier, whose files are small
embed get-sentence-vector sentence-transformer: dw.SentenceEncoder(v)
get-mean-vector: v[words].mean(axis=0)
fuse: dw.FusedFeatures
latent lda lda-model topics cluster clusters: dw.LatentClassModel or dw.SCDV
doc2vec scdv documents infer-vector dv: dw.SCDV
load-model: dw.load(file)
keyed-vectors load-word2vec-format load-vectors load-facebook-vectors: dw.Vectors.load(file)
save-word2vec-format save-model convert: v.save("v.bin")
check: dw.check(file)
info: dw.info(file)
explore: dw.explore(files, output)
classes: dw.classes(v, n)
wv: v itself
vocab vocabulary index-to-key index2word index2entity get-words: v.words
key-to-index get-index get-word-id: v.index(word)
get-vecattr: v.counts[v.index(word)]
get-vector word-vec get-word-vector: v[word]
syn0 get-input-matrix: v.vectors
syn1 syn1neg get-output-matrix: v.context.vectors
predict-output-word: dw.predict_word(v, 'the _ of england')
has-index-for: word in v
add-vector add-vectors from-gensim: dw.Vectors(words, vectors)
intersect-word2vec-format: dw.train(corpus, init=file)
get-normed-vectors: v.vectors / np.linalg.norm(v.vectors, axis=1, keepdims=True)
odd-one-out: v.doesnt_match(words)
most-similar-to-given: v.most_similar(word, among=words)
most-similar-cosmul wmdistance closer-than distances rank: a method of v.to_gensim()
"""


@functools.cache
def hints(table: str) -> dict[str, str]:
    """Parse a table of hints, and return a dict from normalized names to replacements."""
    lines = (line.partition(":") for line in table.splitlines())
    return {name: instead.strip() for names, _, instead in lines for name in names.split()}


def option_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message about an unknown option: a suggested replacement."""
    return _hint(name, known, [one for one in _instead(_OPTIONS, name) if _is_known(one, known)])


def command_hint(name: str, known: Iterable[str], of_program: Iterable[str]) -> str:
    """Return the end of an error message about an unknown command: a suggested replacement."""
    given = _instead(_COMMANDS, name)
    here = [one for one in given if one.split()[0] in known]
    if not here and name in of_program:
        return f"; use dcme-w2v {name}"
    return _hint(name, known, here or given[:1])


def _instead(table: str, name: str) -> list[str]:
    found = hints(table).get(plain_name(name))
    return found.split("|") if found else []


def _is_known(option: str, known: Iterable[str]) -> bool:
    names = map(plain_name, known)
    return not option.startswith("-") or plain_name(re.split("[ =]", option)[0]) in names


def _hint(name: str, known: Iterable[str], given: list[str]) -> str:
    if given:
        return f"; {given[0]}" if given[0].startswith("omit") else f"; use {given[0]}"
    plain = {plain_name(one): one for one in known if one[:1] != "_"}
    near = closest(plain_name(name), plain)
    return f"; did you mean {plain[near]}?" if near and name[:1] != "_" else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name with the most similar spelling, or None if none is similar enough."""
    import difflib

    near = difflib.get_close_matches(name[:MAX_COMPARED], list(known), 1, MIN_SIMILARITY)
    return near[0] if near else None


def no_attribute(owner: str, name: str, others: Iterable[str]) -> str:
    """Return an `AttributeError` message, with a suggested replacement if one is known."""
    return f"{owner} has no attribute {name!r}{_hint(name, others, _instead(_ATTRIBUTES, name))}"


def plain_name(name: str) -> str:
    """Normalize the spelling of a name, for example -minCount to min-count."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", name.lstrip("-")).replace("_", "-").lower()
