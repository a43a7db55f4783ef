"""Maximum-entropy classification over many classes."""

from dcme_w2v.classify.estimator import MaxentClassifier

__all__ = ["MaxentClassifier"]
