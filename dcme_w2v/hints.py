"""What replaces the names of gensim, word2vec.c, fastText and scikit-learn here.

A name of another program is an error whose message gives the name here; nothing is an alias.
"""

import functools
import re
from collections.abc import Iterable

from dcme_w2v.errors import in_python_terms

MIN_SIMILARITY = 0.7  # of suggested names, from 0 to 1

# Options, commands, attributes and functions -> what to use; the first option that is known.
_HINTS = """
size vector-size embedding-size: --dim
iter n-iter epoch max-iter: --epochs|--iterations|--rounds
alpha start-alpha learning-rate eta eta0 step-size: --lr|--l2
workers thread num-threads n-jobs: --threads
ws window-size: --window
shrink-windows: --window-mode
sg cbow: --model
hs loss: --objective
neg negatives negative-samples: --negative
ns-exponent: --noise-power
t subsample: --sample
max-final-vocab max-vocab-size: --max-vocab
binary: --format
bucket: --buckets|--hashing
minn maxn: --subwords=MIN-MAX
word-ngrams: --ngrams
pretrained-vectors: --init
save-output: --output-tables
save-vocab: the command vocab
autotune-validation autotune-duration: --tune
merge-context-vectors sum-context ensemble: --vectors=sum
callbacks compute-loss: --progress
trim-rule: --read-vocab
verbose debug: --quiet|--progress
random-state: --seed
c penalty: --l2 (1 / (C * rows))
n-components n-clusters: --latent|--clusters
tol: --tolerance
fit-intercept: --bias
restrict-vocab clip-end: --limit
k n top-n top-k: --topn
write-header: --header
input corpus-file corpus-iterable: CORPUS, the first argument
cbow-mean: omit it: CBOW always takes the mean
documents dm dbow-words dm-mean infer-vector dv: dw.SCDV or dw.SentenceEncoder

nn most-similar distance get-nearest-neighbors similar-by-word similar-by-vector: \
neighbors, or v.most_similar(word)
word-analogy analogies get-analogies: neighbors VECTORS +A -B +C, or v.most_similar
compute-accuracy evaluate-word-analogies accuracy: eval analogies, or dw.eval_analogies(v, file)
evaluate-word-pairs: eval similarity, or dw.eval_similarity(v, file)
word2phrase phraser: phrases
skipgram glove word2vec word2-vec fast-text fasttext train-unsupervised build-vocab train: \
train, or dw.train(corpus)
supervised train-supervised classify: classify train, or dw.MaxentClassifier
predict predict-prob get-labels: classify predict, or dw.MaxentClassifier
test: classify test
quantize: fuse shrink
vocab-count vocab: vocab, or dw.vocab(corpus)
print-word-vectors: convert, or encode --pooling=mean
print-sentence-vectors get-sentence-vector get-mean-vector: encode, or v[words].mean(axis=0)
check: dw.check(file)
info: dw.info(file)
explore: dw.explore(files, output)
classes: the command classes, or dw.classes(v, n)
fuse: dw.FusedFeatures
latent: dw.LatentClassModel
doc2vec lda-model scdv: dw.SCDV
keyed-vectors load-model load-word2vec-format: dw.Vectors.load(file)
save-word2vec-format save-model convert: v.save("v.bin")
wv: v itself
index-to-key index2word index2entity get-words: v.words
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
odd-one-out doesnt-match: neighbors, or v.doesnt_match(words)
most-similar-to-given: v.most_similar(word, among=words)
most-similar-cosmul wmdistance closer-than distances rank: a method of v.to_gensim()
"""


@functools.cache
def hints() -> dict[str, str]:
    """Return what replaces each name, in the form of `plain_name`."""
    lines = (line.partition(":") for line in _HINTS.splitlines())
    return {name: instead.strip() for names, _, instead in lines for name in names.split()}


def hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: what replaces it, or the nearest name."""
    plain = {plain_name(one): one for one in known if one[:1] != "_"}
    for instead in hints().get(plain_name(name), "").split("|"):
        is_option = instead[:1] == "-"
        if instead and (not is_option or plain_name(re.split("[ =]", instead)[0]) in plain):
            return f"; {instead}" if instead.startswith("omit") else f"; use {instead}"
    import difflib

    near = difflib.get_close_matches(plain_name(name), plain, 1, MIN_SIMILARITY)
    return f"; did you mean {plain[near[0]]}?" if near and name[:1] != "_" else ""


def no_attribute(owner: str, name: str, others: Iterable[str]) -> str:
    """Return the message of an `AttributeError`."""
    return f"{owner} has no attribute {name!r}{in_python_terms(hint(name, others))}"


def plain_name(name: str) -> str:
    """Return ``min-count`` for ``--min-count``, ``-minCount`` and ``min_count``."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", name.lstrip("-")).replace("_", "-").lower()
