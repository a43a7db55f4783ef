"""The names that users of gensim, word2vec.c and fastText know, and what replaces each here.

A name of another program is an error whose message gives the name here; nothing is an alias. The
tables are read when a name is not found, so that they cost nothing otherwise.
"""

import difflib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from dcme_w2v.errors import UnknownOptionError

P = ParamSpec("P")
R = TypeVar("R")


def table(text: str) -> dict[str, str]:
    """Return what replaces each name, of lines ``name other-name: replacement``."""
    lines = (line.partition(":") for line in text.strip().splitlines())
    return {name: replacement.strip() for names, _, replacement in lines for name in names.split()}


# Options of `train`, some by value -> the name here, or a sentence.
OPTIONS = table("""
corpus_file corpus_iterable input inputs: give the corpus as the first argument: train(corpus)
size vector_size: dim
iter iter_ n_iter: epochs
alpha start_alpha learning_rate: lr
workers thread n_jobs: threads
ws window_size: window
min_alpha: min_lr
ns_exponent: noise_power
max_final_vocab: max_vocab
compute_loss: omit compute_loss: the loss of each epoch is in manifest and progress
callbacks: progress
trim_rule: give the counts of the words to keep as read_vocab
max_vocab_size: omit it: counting goes to disk if memory is too small
minCount: min_count
neg: negative
t: sample
bucket: buckets
minn maxn: subwords="3-6"
random_state: seed
sg=0: model="cbow"
sg=1: model="skipgram"
cbow=0: model="skipgram"
cbow=1: model="cbow"
hs=0: objective="ns"
hs=1: objective="hs"
cbow_mean=0: the sum is not supported; omit cbow_mean: CBOW always takes the mean
cbow_mean=1: omit cbow_mean: CBOW always takes the mean of the context vectors
shrink_windows=0: window_mode="fixed"
shrink_windows=1: window_mode="shrink"
verbose debug: progress
binary: format
pretrainedVectors pretrained_vectors: init
saveOutput: output_context
hashfxn null_word sorted_vocab batch_words comment lrUpdateRate: not needed: omit it
wordNgrams label minCountLabel: for classes, give the texts to MaxentClassifier or classify train
documents dm dbow_words dm_mean: vectors of documents are made by SCDV or SentenceEncoder
loss=ns: objective="ns"
loss=hs: objective="hs"
loss=softmax: objective="dcme"
""")

# Attributes of gensim's KeyedVectors and Word2Vec, and of fastText's model -> an expression of `v`.
ATTRIBUTES = table("""
wv: v itself
index_to_key index2word index2entity get_words: v.words
key_to_index get_index get_word_id: v.index(word)
vocab: v.words, with the counts v.counts
get_vecattr: v.counts[v.index(word)]
vector_size get_dimension: v.dim
get_vector word_vec get_word_vector: v[word]
syn0 get_input_matrix: v.vectors
syn1neg syn1 get_output_matrix: v.context.vectors
similar_by_word similar_by_key: v.most_similar(word_or_vector)
similar_by_vector get_nearest_neighbors: v.most_similar(word_or_vector)
get_analogies: v.most_similar(positive=[b, c], negative=[a])
n_similarity: v.similarity(v[words].mean(axis=0), v[others].mean(axis=0))
distance: 1 - v.similarity(one, other)
evaluate_word_analogies accuracy: dw.eval_analogies(v, file)
evaluate_word_pairs: dw.eval_similarity(v, file)
score: dw.eval_likelihood(v, corpus), the mean over the tokens
predict_output_word: dw.predict_word(v, 'the _ of england')
save_word2vec_format save_model: v.save("v.bin")
load_word2vec_format load_model: Vectors.load(file)
build_vocab train: dw.train(corpus, init=v, init_vocab="union")
get_mean_vector get_sentence_vector: v[words].mean(axis=0)
init_sims unit_normalize_all fill_norms sort_by_descending_frequency: nothing: omit it
get_normed_vectors: v.vectors * v.inverse_lengths()[:, None]
has_index_for: word in v
add_vector add_vectors: a new dw.Vectors(words, vectors)
intersect_word2vec_format: dw.train(corpus, init=file)
infer_vector dv docvecs: dw.SentenceEncoder(v) or dw.SCDV(v), of texts
predict test get_labels quantize: dw.MaxentClassifier, or the command classify
get_subwords get_subword_id: v.subwords
from_gensim: Vectors(kv.index_to_key, kv.vectors)
most_similar_cosmul most_similar_to_given distances rank closer_than words_closer_than wmdistance \
relative_cosine_similarity vectors_for_all: a method of v.to_gensim()
""")

# Arguments of gensim's methods, and of fastText's.
ARGUMENTS = table("""
restrict_vocab clip_end: restrict
k n top_n topk: topn
clip_start: a slice of the vectors: v[start:].most_similar(...)
indexer: the command neighbors with --index
binary: format="binary" to save, and nothing to load
write_header: header
no_header fvocab encoding unicode_errors datatype case_insensitive dummy4unknown: nothing: omit it
""")

# Names of other packages and of our commands -> an expression here.
NAMES = table("""
Word2Vec FastText word2vec train_unsupervised: dw.train(corpus)
KeyedVectors load load_model: dw.Vectors.load(file)
Phrases Phraser word2phrase: dw.phrases(corpus, output)
train_supervised classify: dw.MaxentClassifier
Doc2Vec LdaModel doc2vec scdv: dw.SCDV
LineSentence Text8Corpus PathLineSentences: the name of the file or folder
simple_preprocess tokenize: tokenize="words", an option of what reads text
vocab: dw.count_words(corpus)
check: dw.check_vectors(file)
info: dw.describe(file)
explore: dw.explore_page(files, output)
classes: dw.word_classes(v, n)
convert: dw.Vectors.load(file).save(other)
neighbors analogy most_similar: v.most_similar(word)
similarity: v.similarity(one, other)
odd_one_out: v.doesnt_match(words)
fuse: dw.FusedFeatures
latent: dw.LatentClassModel
""")


def option_advice(name: str, value: Any) -> str:
    """Return what replaces an option of another program; empty for a name that none has."""
    advice = [one for given, one in OPTIONS.items() if given.partition("=")[0] == name]
    shown = int(value) if isinstance(value, bool) else value
    known = OPTIONS.get(f"{name}={shown}") or " or ".join(dict.fromkeys(advice))
    sentence = " " in known and not known.startswith(("model=", "objective=", "window_mode="))
    return known if sentence or not known else f"here it is {known}"


def attribute_advice(table: Mapping[str, str], owner: str, name: str, others: Sequence[str]) -> str:
    """Return the message of an `AttributeError`: what replaces a name, or the nearest name."""
    message = f"{owner} has no attribute {name!r}"
    if name in table:
        return f"{message}; here it is {table[name]}"
    public = [other for other in others if not other.startswith("_")]
    near = [] if name.startswith("_") else difflib.get_close_matches(name, public, n=1)
    return f"{message}; did you mean {near[0]!r}?" if near else message


def answering_habits(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function answer the arguments of gensim's with the names here."""

    @functools.wraps(function)
    def answering(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name in ARGUMENTS:
                raise UnknownOptionError(f"unknown option {name}; here it is {ARGUMENTS[name]}")
        return function(*args, **kwargs)

    return answering
