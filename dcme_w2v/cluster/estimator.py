"""`MaxentClassifier` as exported by `dcme_w2v`, which supports the parameter `cluster`."""

from dcme_w2v.classify import estimator
from dcme_w2v.classify.fit import RemoteTraining
from dcme_w2v.classify.options import DistributeOptions


class MaxentClassifier(estimator.MaxentClassifier):  # noqa: D101
    __doc__ = estimator.MaxentClassifier.__doc__

    def _remote_training(self) -> RemoteTraining | None:
        options = DistributeOptions(self.cluster, self.shards, self.distribute)
        if options.cluster is None:
            return None
        from .distribute import Distributed

        return Distributed(options)
