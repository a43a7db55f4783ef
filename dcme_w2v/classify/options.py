"""Declare the classification options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.declarations import (
    ENCODING_ERRORS,
    SEED,
    THREADS,
    Checked,
    filled,
    filled_rates,
    flag_of,
    option,
)
from dcme_w2v.errors import UsageError
from dcme_w2v.options import ClusterOptions, HoldoutOptions, ngram_lengths
from dcme_w2v.platform import default_threads

from .constants import (
    FEW_CLASSES,
    LEAD,
    LONG,
    MANY_FEATURES,
    MANY_NUMBERS,
    RATE,
    RATE_OF_HINGE,
    TABLE_CLASSES,
)

MAX_BIAS = 1e3
MAX_LEVELS = 127  # highest quantization level that a signed 8-bit integer can store
TOKENS = "words"
SUBWORDS, NO_SUBWORDS = "1-4", "none"


@dataclass(frozen=True)
class FeatureOptions(Checked):
    """Options for converting text to sparse vectors."""

    group = "Features"

    by: str = option(
        "document",
        "unit to classify: document (one per line) or token (in CoNLL sentences)",
        choices=("document", "token"),
        advanced=True,
    )
    features: int | None = option(
        None,
        "keep the N most frequent words and the N most frequent character n-grams (default: at "
        "least 40,000)",
        metavar="N",
        minimum=1,
        maximum=2**31 - 2,
        unless=("hashing",),
    )
    tokens: str | None = option(
        None,
        "split text into lowercase words (words, the default), or at whitespace (spaces)",
        choices=("words", "spaces"),
        only={"by": ("document",)},
        advanced=True,
    )
    ngrams: int | None = option(
        None,
        "use sequences of 1 to N words (n-grams) as features (default: 1)",
        minimum=1,
        maximum=10,
        only={"by": ("document",)},
    )
    lead: int | None = option(
        None,
        "count the first N words of each document twice (default: 80, or 0 for latent fit)",
        minimum=0,
        only={"by": ("document",)},
        advanced=True,
    )
    lead_ngrams: int | None = option(
        None,
        "also use sequences of 1 to N words from the first --lead words (default: 1 or 2)",
        minimum=1,
        maximum=10,
        only={"by": ("document",)},
        advanced=True,
    )
    subwords: str | None = option(
        None,
        "also use character n-grams with MIN to MAX characters (default: 1-4 for small corpora in "
        "classify train, otherwise none)",
        metavar="MIN-MAX",
        only={"by": ("document",)},
        unless=("hashing",),
        check=lambda given: given == NO_SUBWORDS or ngram_lengths(given),
    )
    min_df: int = option(
        1,
        "drop words and n-grams that occur in fewer than N documents",
        minimum=1,
    )
    max_df: float = option(
        1.0,
        "drop words and n-grams that occur in more than this fraction of the documents",
        above=0.0,
        maximum=1.0,
        advanced=True,
    )
    hashing: int | None = option(
        None,
        "hash features into N columns instead of building a vocabulary",
        minimum=1,
        maximum=2**31 - 2,
        advanced=True,
    )
    weighting: str = option(
        "tfidf",
        "feature weights: count (unchanged), log (1 + log(count)) or tfidf (log times idf)",
        choices=("tfidf", "log", "count"),
    )
    norm: str = option(
        "l2",
        "how to scale document vectors: l2 (to unit length) or none (unchanged)",
        choices=("l2", "none"),
        advanced=True,
    )
    encoding_errors: str = option(**ENCODING_ERRORS)

    @property
    def most_features(self) -> int:
        """The maximum number of features."""
        return self.features or (300_000 if self.by == "token" else 40_000)

    def with_lead(self) -> "FeatureOptions":
        """Fill in the `classify train` defaults for features of the first words in a document."""
        has_default = self.by == "document" and self.weighting != "count"
        found = filled(self, {"tokens": TOKENS, "lead": LEAD if has_default else 0})
        has_pairs = found.lead and self.ngrams is None
        return filled(found, {"lead_ngrams": 2 if has_pairs else 1})

    def resolved(self) -> "FeatureOptions":
        """Fill in the defaults, so that models and checkpoints can store all values."""
        return filled(
            self, {"tokens": TOKENS, "ngrams": 1, "lead_ngrams": 1, "subwords": NO_SUBWORDS}
        )

    def features_of(self, classes: int) -> int:
        """Return the default number of features in `classify train` for a number of classes."""
        if self.features is not None or self.by == "token":
            return self.most_features
        return min(MANY_FEATURES, max(self.most_features, MANY_NUMBERS // max(1, classes)))


_OF_DCME: dict[str, Any] = {
    "only": {"objective": ("dcme", "auto"), "solver": ("sgd",)},
    "advanced": True,
    "group": "Objective",
}


PRESETS: dict[str, dict[str, Any]] = {
    "dcme-2017": {
        "features": 30_000,
        "ngrams": 1,
        "lead": 0,
        "lead_ngrams": 1,
        "subwords": NO_SUBWORDS,
        "objective": "dcme",
        "dcme_update": "paper",
        "epochs": 20,
        "lr": 1.0,
    }
}


def _adapted(preset: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a preset's values, omitting its learning rate if the user chose another algorithm."""
    others = {"objective": ("nce", "ns", "gd", "tree"), "dcme_update": ("robust",)}
    if all(given.get(name) not in values for name, values in others.items()):
        return preset
    own = {"dcme_update", "lr"}
    return {name: value for name, value in preset.items() if name not in own}


@dataclass(frozen=True)
class ClassifyOptions(Checked):
    """Options for training a classifier."""

    group = "Model"

    objective: str = option(
        "auto",
        "objective: gd (exact loss), dcme (dual clustering), nce or ns (sampling), or tree (label "
        "trees)",
        choices=("gd", "dcme", "nce", "ns", "tree", "auto"),
        only={"solver": ("sgd",)},
        group="Objective",
    )
    loss: str | None = option(
        None,
        "loss function: softmax or one-vs-rest squared hinge (default: hinge for up to 5,000 "
        "classes)",
        choices=("softmax", "hinge"),
        group="Objective",
    )
    solver: str | None = option(
        None,
        "optimizer: sgd, lbfgs (softmax only) or dual (hinge only; the default for few documents)",
        choices=("sgd", "lbfgs", "dual"),
    )
    negative: int = option(
        20,
        "number of noise classes to sample per training example (nce and ns only)",
        minimum=1,
        maximum=100000,
        only={"objective": ("nce", "ns"), "solver": ("sgd",)},
        advanced=True,
        group="Objective",
    )
    clusters: int | None = option(
        None,
        "maximum number of class clusters for --objective=dcme (default: 4 * sqrt(number of "
        "classes); 20 with --dcme-update=paper)",
        minimum=1,
        maximum=4096,
        **_OF_DCME,
    )
    dcme_update: str = option(
        "robust",
        "update rule for dcme: robust (tighter bound) or paper (Algorithm 1 in the DCME paper)",
        choices=("robust", "paper"),
        **_OF_DCME,
    )
    batch: int | None = option(
        None,
        "mini-batch size (default: 16 for hinge; otherwise at most 64, depending on the number of "
        "classes)",
        minimum=1,
        maximum=65536,
        only={"solver": ("sgd",)},
        advanced=True,
    )
    epochs: int | None = option(
        None,
        "maximum number of epochs or lbfgs iterations (default: 5 epochs or 100 iterations)",
        minimum=1,
        maximum=1000000,
    )
    patience: int | None = option(
        None,
        "stop after N epochs without improvement on held-out documents, and keep the best weights",
        minimum=1,
        advanced=True,
    )
    lr: float | None = option(
        None,
        "initial learning rate (default: depends on the loss, the number of classes, and whether "
        "documents are held out)",
        above=0.0,
        maximum=1e6,
        only={"solver": ("sgd",)},
    )
    min_lr: float | None = option(
        None,
        "final learning rate after linear decay (default: --lr divided by 10,000)",
        minimum=0.0,
        maximum=1e6,
        only={"solver": ("sgd",)},
        advanced=True,
    )
    l2: float | None = option(
        None,
        "L2 regularization: add X/2 times the sum of squared weights to the loss (default: depends "
        "on the solver)",
        minimum=0.0,
        maximum=1e6,
    )
    bias: float | None = option(
        None,
        "value of the constant bias feature, or 0 for no bias (default: depends on the documents)",
        minimum=0.0,
        maximum=MAX_BIAS,
        advanced=True,
    )
    tolerance: float = option(
        1e-6,
        "stop lbfgs when an iteration reduces the loss by less than this fraction",
        minimum=0.0,
        only={"solver": ("lbfgs",)},
        advanced=True,
    )
    preset: str | None = option(
        None,
        "use the settings of Algorithm 1 in the DCME paper, intended for many classes",
        presets=PRESETS,
        adapted=_adapted,
        advanced=True,
    )
    threads: int | None = option(**THREADS)
    seed: int = option(**SEED)

    @property
    def learner(self) -> str:
        """Return the learner that the resolved options select: sgd, dual, lbfgs or tree."""
        return "tree" if self.objective == "tree" else self.solver or "sgd"


@dataclass(frozen=True)
class DocumentHoldoutOptions(HoldoutOptions):
    """The option for held-out documents, on which training evaluates every epoch."""

    holdout: str | None = option(
        None,
        "held-out documents for evaluation after every epoch: a fraction of DOCS, or a file",
        metavar="X|FILE",
        path="reads",
    )


SECONDS = 60.0  # default time limit (in seconds) of the search for settings


@dataclass(frozen=True)
class TuneOptions(Checked):
    """The option that sets how long to search for settings."""

    group = "Model"

    tune: float | None = option(
        None,
        "time limit in seconds for comparing settings by cross-validation; 0 disables the "
        "comparison (default: 60)",
        metavar="SECONDS",
        minimum=0.0,
        maximum=1e9,
        bare=f"{SECONDS:g}",
    )


@dataclass(frozen=True)
class ContinueOptions(Checked):
    """The option that sets how quickly continued training forgets an earlier model."""

    group = "Model"

    fade: float = option(
        0.0,
        "before training, reduce the --init model's weights and document counts by this fraction",
        minimum=0.0,
        maximum=1.0,
        needs=("init",),
        strict=True,
        advanced=True,
    )


@dataclass(frozen=True)
class DistributeOptions(ClusterOptions):
    """Options for training a classifier on a cluster."""

    distribute: str = option(
        "mixture",
        "combine shards: average models once (mixture) or every epoch (iterate), vote, or sum "
        "gradients",
        choices=("mixture", "vote", "gradient", "iterate"),
        needs=("cluster",),
        advanced=True,
    )


def class_weights_of(given: Sequence[str]) -> dict[str, float] | str | None:
    """Parse the values of --class-weight, which are "balanced" or one weight per label."""
    if len(given) < 2 and (not given or given[0] == "balanced"):
        return given[0] if given else None
    found = {}
    for one in given:
        label, _, weight = one.rpartition("=")
        try:
            found[label] = float(weight)
        except ValueError:
            label = ""
        if not label:
            raise UsageError(
                f"--class-weight={one} is not a label with a weight; use LABEL=WEIGHT, such as "
                "spam=3, or use only balanced"
            )
    return found


# For Algorithm 1 in the paper, a higher learning rate would raise the accuracy but lower the
# likelihood.
PAPER_RATE = 1.0
BIAS = 0.1
L2_OF_LBFGS = L2_OF_SETS = 1e-6  # defaults of --l2 for L-BFGS and for hinge loss on multilabel data
BATCH_MAX, CLASSES_A_DOCUMENT = 64, 16
# In larger batches, the hinge-loss gradients of many documents would correct the same error.
BATCH_OF_HINGE = 16
BATCH_OF_DUAL = 64  # the dual solver trains on batches of this size, one strip of classes at a time
CLUSTERS_OF_PAPER = 20
# C core settings that have no option, for robust dcme and Algorithm 1 (Wang, Wang and Zhai 2017).
INNER = {"center_interval": 40.0, "top_items": 10, "beta": 1.0}
NOISE_POWER = 0.75  # exponent of class counts in the noise distribution of ns (nce uses 1)
TREES = 3  # number of label trees, whose probabilities are averaged


def resolved(options: ClassifyOptions, classes: int, multilabel: bool = False) -> ClassifyOptions:
    """Fill in the defaults of all options; raise an error if options contradict each other.

    If documents have several labels (`multilabel`), the default loss is the hinge loss, provided
    that the other options allow it.
    """
    given = options = filled(options, {"solver": "sgd"})
    if multilabel and options.loss is None and is_hinge_possible(options):
        options = replace(options, loss="hinge")
    is_tree = multilabel and classes > TABLE_CLASSES and is_hinge_possible(given)
    if options.objective == "tree" or (is_tree and given.loss is None):
        return _of_trees(given)
    if options.solver == "dual":
        options = filled(options, {"loss": "hinge", "batch": BATCH_OF_DUAL, "epochs": LONG})
        if options.loss != "hinge" or options.l2 == 0:
            raise UsageError(
                "--solver=dual requires --loss=hinge and a positive --l2; set both, or omit "
                "--solver"
            )
    if options.loss == "hinge":
        supported = {"solver": ("sgd", "dual"), "objective": ("gd", "auto")}
        _check_supported(options, "--loss=hinge", supported)
        options = replace(options, objective="gd")
    if options.objective == "auto":  # choose the faster objective that supports all options
        few = classes < FEW_CLASSES and not _has_dcme(options)
        options = replace(options, objective="gd" if options.solver == "lbfgs" or few else "dcme")
    exact, paper = options.solver == "lbfgs", options.dcme_update == "paper"
    paper = paper and options.objective == "dcme"
    few = classes < FEW_CLASSES and options.objective in ("gd", "dcme")
    rate = RATE / 2 if few else RATE
    rate = RATE_OF_HINGE if options.loss == "hinge" else rate
    sets = multilabel and options.loss == "hinge"
    found: dict[str, Any] = {
        "loss": "softmax",
        "clusters": CLUSTERS_OF_PAPER if paper else min(4096, round(4 * classes**0.5)),
        # Gradients in a batch ignore each other's updates, so batches are small if there are few
        # classes.
        "batch": min(
            BATCH_OF_HINGE if options.loss == "hinge" else BATCH_MAX,
            max(1, classes // CLASSES_A_DOCUMENT),
        ),
        "epochs": 100 if exact else 5,
        "lr": PAPER_RATE if paper else rate,
        "l2": L2_OF_LBFGS if exact or options.solver == "dual" else L2_OF_SETS if sets else 0.0,
        "bias": BIAS,
        "threads": options.threads or default_threads(),
    }
    return filled_rates(options, found)


def _check_supported(
    options: ClassifyOptions, given: str, supported: Mapping[str, tuple[Any, ...]]
) -> None:
    """Raise an error if an option has a value that cannot be combined with the option `given`."""
    for name, values in supported.items():
        if (value := getattr(options, name)) not in values:
            raise UsageError(
                f"{given} is not supported with {flag_of(name)} {value}; omit one of the two "
                "options"
            )


def _of_trees(options: ClassifyOptions) -> ClassifyOptions:
    """Fill in the default options for label trees."""
    supported = {"solver": ("sgd",), "loss": (None, "hinge"), "patience": (None,)}
    _check_supported(options, "--objective=tree", supported)
    found = {
        "loss": "hinge", "epochs": 5, "lr": RATE_OF_HINGE, "l2": L2_OF_SETS,
        "bias": BIAS, "threads": options.threads or default_threads(),
    }  # fmt: skip
    return filled_rates(replace(options, objective="tree"), found)


def _has_dcme(options: ClassifyOptions) -> bool:
    """Return whether the user set an option that only dcme supports."""
    return options.clusters is not None or options.dcme_update == "paper"


def is_hinge_possible(options: ClassifyOptions) -> bool:
    """Return whether the user's options allow the hinge loss."""
    linear = options.solver != "lbfgs" and options.objective == "auto"
    return linear and not _has_dcme(options)


@dataclass(frozen=True)
class ShrinkOptions(Checked):
    """Options for compressing the weights of a classifier."""

    group = "Model"

    removed = ("coding", "words")

    levels: int = option(
        8, "number of quantization levels for the weights", minimum=1, maximum=MAX_LEVELS
    )
    keep: str | None = option(
        None,
        "number or fraction of weights to keep, such as 5000, 0.1 or 1/20 (default: all)",
        metavar="N|FRACTION",
        check=lambda keep: kept_weights(keep, 1 << 62),
    )
    max_bytes: int | None = option(
        None,
        "keep only as many weights as fit into a model file of N bytes",
        minimum=1,
    )


def kept_weights(keep: str | None, total: int) -> int:
    """Convert the option `keep` to the number of weights to keep.

    Raises
    ------
    UsageError
        `keep` is not a number or fraction, is 0, or exceeds `total`.
    """
    if keep is None:
        return total
    over, slash, under = keep.partition("/")
    try:
        number = int(keep) if keep.isdecimal() else None
        share = float(over) / float(under) if slash else float(keep)
    except (ValueError, ZeroDivisionError):
        number, share = None, -1.0
    if number is not None and (number > 1 or keep == "1"):
        if number > total:
            raise UsageError(
                f"--keep={keep}: the model has only {total:,} weights; use a smaller number, or a "
                "fraction such as 0.1"
            )
        return number
    if not 0 < share <= 1:
        raise UsageError(
            f"--keep={keep} is neither a number nor a fraction of weights; use a value such as "
            "5000, 0.1 or 1/20"
        )
    return max(1, int(share * total))
