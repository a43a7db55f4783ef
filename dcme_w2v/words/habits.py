"""The names that users of gensim, word2vec.c and fastText know, and what replaces each here.

A name of another program is an error whose message gives the name here; nothing is an alias. The
tables are read when a name is not found, so that they cost nothing otherwise.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

_FIRST = "give the corpus as the first argument: train(corpus)"
_NO_SUM = "omit cbow_mean: CBOW always takes the mean of the context vectors"

# Options of `train` -> the name here, or by value, or a sentence.
OPTIONS: dict[str, str | dict[Any, str]] = {
    **dict.fromkeys(("corpus_file", "corpus_iterable", "input", "inputs"), _FIRST),
    **dict.fromkeys(("size", "vector_size"), "dim"),
    **dict.fromkeys(("iter", "iter_", "n_iter"), "epochs"),
    **dict.fromkeys(("alpha", "start_alpha", "learning_rate"), "lr"),
    **dict.fromkeys(("workers", "thread", "n_jobs"), "threads"),
    **dict.fromkeys(("ws", "window_size"), "window"),
    "min_alpha": "min_lr",
    "sg": {0: 'model="cbow"', 1: 'model="skipgram"'},
    "cbow": {0: 'model="skipgram"', 1: 'model="cbow"'},
    "hs": {0: 'objective="ns"', 1: 'objective="hs"'},
    "cbow_mean": {0: f"the sum is not supported; {_NO_SUM}", 1: _NO_SUM},
    "shrink_windows": {False: 'window_mode="fixed"', True: 'window_mode="shrink"'},
    "ns_exponent": "noise_power",
    "max_final_vocab": "max_vocab",
    "compute_loss": "omit compute_loss: the loss of each epoch is in manifest and progress",
    "callbacks": "progress",
    "trim_rule": "give the counts of the words to keep as read_vocab",
    "max_vocab_size": "omit it: max_vocab also bounds the memory of counting",
    "minCount": "min_count",
    "neg": "negative",
    "t": "sample",
    "bucket": "buckets",
    **dict.fromkeys(("minn", "maxn"), 'subwords="3-6"'),
    "loss": {"ns": 'objective="ns"', "hs": 'objective="hs"', "softmax": 'objective="dcme"'},
    "random_state": "seed",
}

# Attributes of gensim's KeyedVectors and Word2Vec, and of fastText's model -> an expression of `v`.
ATTRIBUTES = {
    "wv": "v itself",
    **dict.fromkeys(("index_to_key", "index2word", "index2entity", "get_words"), "v.words"),
    **dict.fromkeys(("key_to_index", "get_index", "get_word_id"), "v.index(word)"),
    "vocab": "v.words, with the counts v.counts",
    "get_vecattr": "v.counts[v.index(word)]",
    **dict.fromkeys(("vector_size", "get_dimension"), "v.dim"),
    **dict.fromkeys(("get_vector", "word_vec", "get_word_vector"), "v[word]"),
    **dict.fromkeys(("syn0", "get_input_matrix"), "v.vectors"),
    **dict.fromkeys(("syn1neg", "syn1", "get_output_matrix"), "v.context.vectors"),
    **dict.fromkeys(
        ("similar_by_word", "similar_by_key", "similar_by_vector", "get_nearest_neighbors"),
        "v.most_similar(word_or_vector)",
    ),
    "get_analogies": "v.most_similar(positive=[b, c], negative=[a])",
    "n_similarity": "v.similarity(v[words].mean(axis=0), v[others].mean(axis=0))",
    "distance": "1 - v.similarity(one, other)",
    **dict.fromkeys(("evaluate_word_analogies", "accuracy"), "dw.eval_analogies(v, file)"),
    "evaluate_word_pairs": "dw.eval_similarity(v, file)",
    "score": "dw.score(v, corpus)",
    "predict_output_word": "dw.predict_word(v, 'the _ of england')",
    **dict.fromkeys(("save_word2vec_format", "save_model"), 'v.save("v.bin")'),
    **dict.fromkeys(("load_word2vec_format", "load_model"), "Vectors.load(file)"),
    **dict.fromkeys(("build_vocab", "train"), 'dw.train(corpus, init=v, init_vocab="union")'),
    **dict.fromkeys(("get_mean_vector", "get_sentence_vector"), "v[words].mean(axis=0)"),
    **dict.fromkeys(("init_sims", "unit_normalize_all", "fill_norms"), "nothing: omit it"),
}

# Arguments of gensim's `most_similar`.
ARGUMENTS = {
    **dict.fromkeys(("restrict_vocab", "clip_end"), "restrict"),
    **dict.fromkeys(("k", "n", "top_n", "topk"), "topn"),
    "clip_start": "a slice of the vectors: v[start:].most_similar(...)",
    "indexer": "the command neighbors with --index",
}

# Names of other packages and of our commands -> an expression here.
NAMES = {
    **dict.fromkeys(("Word2Vec", "FastText", "word2vec", "train_unsupervised"), "dw.train(corpus)"),
    **dict.fromkeys(("KeyedVectors", "load", "load_model"), "dw.Vectors.load(file)"),
    **dict.fromkeys(("Phrases", "Phraser", "word2phrase"), "dw.phrases(corpus, output)"),
    "train_supervised": "dw.MaxentClassifier",
    **dict.fromkeys(("Doc2Vec", "LdaModel", "doc2vec"), "dw.SCDV"),
    "LineSentence": "the file's name",
    "vocab": "dw.count_words(corpus)",
    "check": "dw.check_vectors(file)",
    "info": "dw.describe(file)",
    "explore": "dw.explore_page(files, output)",
    "classes": "dw.word_classes(v, n)",
    "convert": "dw.Vectors.load(file).save(other)",
    **dict.fromkeys(("neighbors", "analogy", "most_similar"), "v.most_similar(word)"),
    "similarity": "v.similarity(one, other)",
    "odd_one_out": "v.doesnt_match(words)",
    "classify": "dw.MaxentClassifier",
    "fuse": "dw.FusedFeatures",
    "latent": "dw.LatentClassModel",
    "scdv": "dw.SCDV",
}


def option_advice(name: str, value: Any) -> str:
    """Return what replaces an option of another program; empty for a name that none has."""
    known = OPTIONS.get(name, "")
    if isinstance(known, dict):
        listed = dict(known)
        known = listed.get(value) or " or ".join(dict.fromkeys(listed.values()))
    sentence = " " in known and not known.startswith(("model=", "objective=", "window_mode="))
    return known if sentence or not known else f"here it is {known}"


def attribute_advice(table: Mapping[str, str], owner: str, name: str, others: Sequence[str]) -> str:
    """Return the message of an `AttributeError`: what replaces a name, or the nearest name."""
    message = f"{owner} has no attribute {name!r}"
    if name in table:
        return f"{message}; here it is {table[name]}"
    near = [] if name.startswith("_") else difflib.get_close_matches(name, others, n=1)
    return f"{message}; did you mean {near[0]!r}?" if near else message
