"""Print a digest of each result that must not depend on threads; see test_promises.py.

Sizes are such that BLAS would share each kind of product among its threads.
"""

import hashlib
import json
import sys

import numpy as np
from scipy.sparse import csr_matrix

import dcme_w2v as dw
from dcme_w2v.numeric.components import singular_vectors
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.words.convert import reduced

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
