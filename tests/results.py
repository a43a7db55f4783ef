"""Print a digest of each result that must not depend on threads; see test_promises.py.

Sizes are such that BLAS would share each kind of product among its threads.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import dcme_w2v as dw
from dcme_w2v.classify.calibration import likeliest_factors
from dcme_w2v.classify.metrics import Measures
from dcme_w2v.numeric.components import singular_vectors
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.words.convert import reduced
from dcme_w2v.words.heldout import dual_bounds

random = np.random.default_rng(7)
LABELS = np.arange(1200) % 4
ROWS = random.normal(size=(1200, 600)).astype(np.float32) + (LABELS[:, None] == np.arange(600) % 8)
WORDS = [f"w{i}" for i in range(3000)]
VECTORS = dw.Vectors(WORDS, random.normal(size=(3000, 64)).astype(np.float32) + LABELS.mean(),
                     counts=np.arange(3000, 0, -1))  # fmt: skip
TEXTS = [" ".join(random.choice(WORDS, 12)) for _ in range(400)]


def latent(threads, labels, **options):
    model = dw.LatentClassModel(threads=threads, epochs=3, **options).fit(ROWS, labels)
    described = model._model.describe()
    return model.costs_, model.coef_, model.predict_proba(ROWS), json.dumps(described)


def scdv(threads):
    texts = [one.encode() for one in TEXTS]
    model = fit_documents(texts, VECTORS, ScdvOptions(clusters=20, iterations=4), threads=threads)
    parts = (one.toarray() for one in model.transform(texts, threads))
    return model.mixture.means, model.facts["log_likelihoods"], np.concatenate(list(parts))


def sentences(threads, pooling):
    return dw.SentenceEncoder(VECTORS, pooling=pooling, threads=threads).fit_transform(TEXTS)


def small(threads):
    """A classifier by L-BFGS, and one of texts with the hinge loss, its calibration too."""
    model = dw.MaxentClassifier(threads=threads).fit(ROWS[:, :60], LABELS)
    texts = dw.TextClassifier(threads=threads).fit(TEXTS, LABELS[:400])
    return model.coef_, texts.predict_proba(TEXTS)


def fused(threads):
    """Few labels, which choose the settings, and rows without labels."""
    model = dw.FusedFeatures(threads=threads, rounds=1)
    return model.fit(abs(ROWS), np.where(np.arange(1200) < 60, LABELS, -1)).predict_proba(ROWS)


def of_words(_):
    """Rows with fewer dimensions, and words whose vectors have changed."""
    other = VECTORS.vectors[::-1] + VECTORS.vectors
    found = dw.compare(VECTORS, dw.Vectors(WORDS, other, counts=VECTORS.counts))
    return [reduced(VECTORS.vectors, 20)[0], str(found)]


def trained(_):
    """Word vectors with clusters, their held-out text, and what they predict."""
    log = Path("log")
    common = {"dim": 64, "threads": 1, "epochs": 1, "min_count": 1, "progress": False}
    sentences = [text.split() for text in TEXTS]
    v = dw.train(sentences, holdout=0.3, clusters=8, objective="dcme", log_json=log, **common)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    scored = [{name: one[name] for name in one if name in HELD} for one in told]
    return [json.dumps(scored), str(dw.eval_likelihood(v, sentences)),
            str(dw.predict_word(v, [*TEXTS[0].split()[:3], "_"], topn=20))]  # fmt: skip


HELD = ("heldout_log_probability", "heldout_surrogate", "heldout_gap")


def queries(_):
    """Answers of word vectors and of an index."""
    rows = zip(*[iter(WORDS[:400])] * 4, strict=True)
    Path("analogies").write_text(": all\n" + "".join(f"{' '.join(row)}\n" for row in rows))
    found = [dw.eval_analogies(VECTORS, "analogies", method=one) for one in ("3cosadd", "3cosmul")]
    index = dw.Search(vectors=VECTORS).fit(TEXTS)
    far = VECTORS.doesnt_match(WORDS[:300])
    return [str(found), str(far), str(index.search([" ".join(TEXTS[:20])], 20))]


def page(_):
    """A page for a browser."""
    dw.explore(VECTORS, "page.html", method="pca")
    return [Path("page.html").read_text(encoding="utf-8")]


def many(threads):
    """A step of training on many rows with weights, measures of them, and bounds of many words."""
    X, y = np.tile(ROWS[:, :8], (30, 1)), np.tile(LABELS, 30)
    weights = 1 + random.random(len(y))
    model = dw.MaxentClassifier(threads=threads).partial_fit(X, y, range(4), weights)
    measures = Measures(4, False)
    measures.add(model.predict_log_proba(X), y[:, None].tolist(), weights.astype(np.float32))
    factors = likeliest_factors([model.decision_function(X)], y[:, None].tolist(), weights)
    # BLAS divides a long sum where the result is small.
    centers, output = (random.random(shape, np.float32) for shape in ((8, 30_000), (30_000, 100)))
    bounds, _ = dual_bounds(ROWS[:, :100], output, centers, output[:, 0])
    return [model.coef_, str(measures.result()), *factors, bounds]


RESULTS = {
    "latent classes": lambda threads: latent(threads, LABELS, latent=40),
    "clusters": lambda threads: latent(threads, None, latent=20, l2=1e-4),
    "clusters by k-means": lambda threads: latent(
        threads, None, latent=20, init_method="kmeans", lsa=0
    ),
    "scdv": scdv,
    "static": lambda threads: sentences(threads, "static"),
    "usif": lambda threads: sentences(threads, "usif"),
    "k-means": lambda threads: kmeans(VECTORS.vectors, 30, 1, threads),
    "singular vectors": lambda _: singular_vectors(ROWS, 20, 1, centered=True),
    "sparse singular vectors": lambda _: singular_vectors(csr_matrix(ROWS), 20, 1, centered=False),
    "classifiers": small,
    "few labels": fused,
    "words": of_words,
    "trained words": trained,
    "queries": queries,
    "page": page,
    "many rows": many,
    "sentences of several threads": lambda threads: [
        *ordered_map(lambda _: sentences(1, "usif"), range(3), threads)
    ],
}


def digest(found):
    """Return the digest of arrays, numbers and text."""
    parts = found if isinstance(found, list | tuple) else [found]
    made = hashlib.sha256()
    for one in parts:
        bare = one.encode() if isinstance(one, str) else np.ascontiguousarray(one).tobytes()
        made.update(bare)
    return made.hexdigest()


if __name__ == "__main__":
    print(json.dumps({name: digest(result(int(sys.argv[1]))) for name, result in RESULTS.items()}))
