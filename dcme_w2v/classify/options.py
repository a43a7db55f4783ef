"""The single declaration of the options of classification; see `dcme_w2v.options`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.declarations import (
    Checked,
    encoding_errors_option,
    filled,
    filled_rates,
    flag_of,
    option,
    seed_option,
    threads_option,
)
from dcme_w2v.errors import UsageError
from dcme_w2v.options import ClusterOptions, HoldoutOptions, ngram_lengths
from dcme_w2v.platform import default_threads

from .constants import (
    FEW_CLASSES,
    LEAD,
    MANY_FEATURES,
    MANY_NUMBERS,
    RATE,
    RATE_OF_HINGE,
    TABLE_CLASSES,
)

MAX_BIAS = 1e3
MAX_LEVELS = 127  # signed levels are stored as int8
TOKENS = "words"
SUBWORDS, NO_SUBWORDS = "1-4", "none"


@dataclass(frozen=True)
class FeatureOptions(Checked):
    """How text is converted to a sparse vector."""

    group = "Features"

    by: str = option(
        "document",
        "classify documents, one a line, or the tokens of sentences in CoNLL's columns: token, "
        "..., tag",
        choices=("document", "token"),
        advanced=True,
    )
    features: int | None = option(
        None,
        "keep the N most frequent words or n-grams (default: 40000; classify train: up to 200000 "
        "as long as they have 2^26 weights at most; by token: 300000 features)",
        metavar="N",
        minimum=1,
        maximum=2**31 - 2,
        unless=("hashing",),
    )
    tokens: str | None = option(
        None,
        "words: lower-cased runs of letters, marks and digits, and single ideographs, as for "
        "--tokenize=words; spaces: split at whitespace, unchanged (default: words)",
        choices=("words", "spaces"),
        only={"by": ("document",)},
        advanced=True,
    )
    ngrams: int | None = option(
        None,
        "features are n-grams of up to N words (default: 1)",
        minimum=1,
        maximum=10,
        only={"by": ("document",)},
    )
    lead: int | None = option(
        None,
        "count the first N words of a document twice (default: 80 for classify train and fuse fit, "
        "0 for other commands and with --weighting count)",
        minimum=0,
        only={"by": ("document",)},
        advanced=True,
    )
    lead_ngrams: int | None = option(
        None,
        "features are also n-grams of up to N of the first words (default: 2 for classify train "
        "where they count twice, unless held-out documents show that 1 is better; otherwise 1)",
        minimum=1,
        maximum=10,
        only={"by": ("document",)},
        advanced=True,
    )
    subwords: str | None = option(
        None,
        "features are also the n-grams of MIN to MAX characters of words, as 1-4, or not (none) "
        "(default: none; classify train and fuse fit: 1-4 where held-out documents are predicted "
        "better with them, and for few short documents)",
        metavar="MIN-MAX",
        only={"by": ("document",)},
        unless=("hashing",),
        advanced=True,
        check=lambda given: given == NO_SUBWORDS or ngram_lengths(given),
    )
    min_df: int = option(
        1, "drop words and n-grams of fewer than N documents (not with --hashing)", minimum=1
    )
    max_df: float = option(
        1.0,
        "drop words and n-grams of more than this share of the documents (not with --hashing)",
        above=0.0,
        maximum=1.0,
        advanced=True,
    )
    hashing: int | None = option(
        None,
        "feature hashing into N columns, without a vocabulary",
        minimum=1,
        maximum=2**31 - 2,
        advanced=True,
    )
    weighting: str = option(
        "tfidf",
        "count: term counts; log: 1 + log count; tfidf: log times inverse document frequency",
        choices=("tfidf", "log", "count"),
    )
    norm: str = option(
        "l2",
        "scale each document's vector to unit length, or not",
        choices=("l2", "none"),
        advanced=True,
    )
    encoding_errors: str = encoding_errors_option()

    @property
    def most_features(self) -> int:
        """How many features are kept, at most."""
        return self.features or (300_000 if self.by == "token" else 40_000)

    @property
    def subword_lengths(self) -> tuple[int, int]:
        """The shortest and the longest n-gram in characters; 0, 0 without them."""
        return ngram_lengths(None if self.subwords == NO_SUBWORDS else self.subwords)

    def with_lead(self) -> "FeatureOptions":
        """Return the options of `classify train`, with its defaults except of `ngrams`."""
        has_default = self.by == "document" and self.weighting != "count"
        found = filled(self, {"tokens": TOKENS, "lead": LEAD if has_default else 0})
        has_pairs = found.lead and self.ngrams is None
        return filled(found, {"lead_ngrams": 2 if has_pairs else 1})

    def resolved(self) -> "FeatureOptions":
        """Return the options with the defaults that models and checkpoints keep."""
        return filled(
            self, {"tokens": TOKENS, "ngrams": 1, "lead_ngrams": 1, "subwords": NO_SUBWORDS}
        )

    def features_of(self, classes: int) -> int:
        """Return how many features `classify train` keeps for a number of classes, at most."""
        if self.features is not None or self.by == "token":
            return self.most_features
        return min(MANY_FEATURES, max(self.most_features, MANY_NUMBERS // max(1, classes)))


_OF_DCME: dict[str, Any] = {
    "only": {"objective": ("dcme", "auto"), "solver": ("sgd",)},
    "advanced": True,
    "group": "Objective",
}


@dataclass(frozen=True)
class ClassifyOptions(Checked):
    """How a classifier is trained; the C core's `dcme_classify_options` takes its fields."""

    group = "Model"

    objective: str = option(
        "auto",
        "exact softmax (gd), dual-clustering maximum entropy, noise-contrastive estimation or "
        "negative sampling, or trees of labels with sparse weights (tree); auto: gd below 500 "
        "classes, else dcme; tree above 5,000 labels, several a document",
        choices=("gd", "dcme", "nce", "ns", "tree", "auto"),
        only={"solver": ("sgd",)},
        group="Objective",
    )
    loss: str | None = option(
        None,
        "softmax, or the squared hinge loss, one class against the rest (default: hinge up to "
        "5,000 classes; softmax above, for tokens, and with --objective, --clusters or lbfgs)",
        choices=("softmax", "hinge"),
        advanced=True,
        group="Objective",
    )
    solver: str | None = option(
        None,
        "stochastic gradient descent on --objective, or L-BFGS on the exact softmax (default: sgd)",
        choices=("sgd", "lbfgs"),
    )
    negative: int = option(
        20,
        "noise classes per example (nce, ns)",
        minimum=1,
        maximum=100000,
        only={"objective": ("nce", "ns"), "solver": ("sgd",)},
        advanced=True,
        group="Objective",
    )
    clusters: int | None = option(
        None,
        "divide the classes into N clusters of similar ones, at most (dcme; default: 80; with "
        "--objective auto at least twice the root of the number of classes; paper: 20)",
        minimum=1,
        maximum=4096,
        **_OF_DCME,
    )
    dcme_update: str = option(
        "robust",
        "robust: a bound that is exact in the head; paper: exactly Algorithm 1 (dcme)",
        choices=("robust", "paper"),
        **_OF_DCME,
    )
    batch: int | None = option(
        None,
        "size of a mini-batch (default: by the number of classes; at most 64, hinge: at most 16)",
        minimum=1,
        maximum=65536,
        only={"solver": ("sgd",)},
        advanced=True,
    )
    epochs: int | None = option(
        None,
        "passes over the documents (default: 5; lbfgs: 100 iterations)",
        minimum=1,
        maximum=1000000,
    )
    patience: int | None = option(
        None,
        "early stopping: with --holdout, stop after N epochs without improvement and keep the best "
        "one",
        minimum=1,
        advanced=True,
    )
    lr: float | None = option(
        None,
        "initial learning rate, for vectors of unit length (default: 8; gd and dcme below 500 "
        "classes: 4; hinge: 0.5; these lower where that predicts held-out documents better; "
        "paper: 1)",
        above=0.0,
        maximum=1e6,
        only={"solver": ("sgd",)},
    )
    min_lr: float | None = option(
        None,
        "final learning rate of the linear decay (default: lr / 10,000)",
        minimum=0.0,
        maximum=1e6,
        only={"solver": ("sgd",)},
        advanced=True,
    )
    l2: float | None = option(
        None,
        "L2 regularization, X/2 times the squared weights (default: 0; lbfgs: 1e-6)",
        minimum=0.0,
        maximum=1e6,
    )
    bias: float | None = option(
        None,
        "value of the constant feature of every document; 0: no bias (default: 0.1; hinge below "
        "500 classes: 0.2 times the length of the vectors, where chosen on held-out documents)",
        minimum=0.0,
        maximum=MAX_BIAS,
        advanced=True,
    )
    tolerance: float = option(
        1e-6,
        "stop when an iteration reduces the loss by less than this share (lbfgs)",
        minimum=0.0,
        only={"solver": ("lbfgs",)},
        advanced=True,
    )
    threads: int | None = threads_option()
    seed: int = seed_option()

    @property
    def learner(self) -> str:
        """What learns with resolved options: sgd, lbfgs or tree."""
        return "tree" if self.objective == "tree" else self.solver or "sgd"


@dataclass(frozen=True)
class DocumentHoldoutOptions(HoldoutOptions):
    """Documents that are excluded from training and measured after each epoch."""

    holdout: str | None = option(
        None,
        "exclude this share of the documents from training, or use this file, and measure it after "
        "each epoch",
        metavar="X|FILE",
        path="reads",
    )


SECONDS = 60.0  # of a search of settings, at most


@dataclass(frozen=True)
class TuneOptions(Checked):
    """Whether settings that are not given are searched."""

    group = "Model"

    tune: float | None = option(
        None,
        "choose loss, learning rate, epochs, L2 and n-grams, as far as not given, on held-out "
        "documents, for at most SECONDS (default: 60)",
        metavar="SECONDS",
        above=0.0,
        maximum=1e9,
        bare=f"{SECONDS:g}",
    )


@dataclass(frozen=True)
class DistributeOptions(ClusterOptions):
    """How a classifier is trained on a cluster."""

    distribute: str = option(
        "mixture",
        "shards trained separately and averaged once (mixture) or after every epoch (iterate), "
        "their probabilities averaged (vote, to compare with the paper), or exact gradients summed "
        "(gradient; --solver lbfgs)",
        choices=("mixture", "vote", "gradient", "iterate"),
        needs=("cluster",),
        advanced=True,
    )


def class_weights_of(given: Sequence[str]) -> dict[str, float] | str | None:
    """Return what values of --class-weight mean: "balanced", or the weights of labels."""
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
            raise UsageError(f"--class-weight={one}: must be balanced, or LABEL=WEIGHT")
    return found


# A higher one gains accuracy, but loses likelihood.
PAPER_RATE = 1.0
BIAS = 0.1
L2_OF_LBFGS = L2_OF_SETS = 1e-6  # without a choice; and of the hinge, several labels a document
BATCH_MAX, CLASSES_A_DOCUMENT = 64, 16
# Documents of a long batch all correct the same error (docs/decisions/classifier-defaults.md).
BATCH_OF_HINGE = 16
CLUSTERS, CLUSTERS_OF_PAPER = 80, 20
# What the core has besides options: of the bound of dcme, of Algorithm 1 in the paper.
INNER = {
    "exact_clusters": 10, "draws": 4, "center_interval": 40.0, "top_items": 10, "beta": 1.0,
}  # fmt: skip
NOISE_POWER = 0.75  # of ns; of nce 1
TREES = 3  # whose probabilities are averaged


def resolved(options: ClassifyOptions, classes: int, multilabel: bool = False) -> ClassifyOptions:
    """Return the options with every default filled in, or raise if they contradict each other.

    With several labels a document (`multilabel`), the loss is by default the hinge, where `auto`
    may choose.
    """
    given = options = filled(options, {"solver": "sgd"})
    if multilabel and options.loss is None and is_hinge_possible(options):
        options = replace(options, loss="hinge")
    is_tree = multilabel and classes > TABLE_CLASSES and is_hinge_possible(given)
    if options.objective == "tree" or (is_tree and given.loss is None):
        return _of_trees(given)
    if options.loss == "hinge":
        options = _exact(options, f"--loss={options.loss}")
    if options.objective == "auto":
        options = _chosen(options, classes)
    exact, paper = options.solver == "lbfgs", options.dcme_update == "paper"
    paper = paper and options.objective == "dcme"
    few = classes < FEW_CLASSES and options.objective in ("gd", "dcme")
    rate = RATE / 2 if few else RATE
    rate = RATE_OF_HINGE if options.loss == "hinge" else rate
    sets = multilabel and options.loss == "hinge"
    found: dict[str, Any] = {
        "loss": "softmax",
        "clusters": CLUSTERS_OF_PAPER if paper else CLUSTERS,
        # gradients within a batch use the same weights: few classes need small batches
        "batch": min(
            BATCH_OF_HINGE if options.loss == "hinge" else BATCH_MAX,
            max(1, classes // CLASSES_A_DOCUMENT),
        ),
        "epochs": 100 if exact else 5,
        "lr": PAPER_RATE if paper else rate,
        "l2": L2_OF_LBFGS if exact else L2_OF_SETS if sets else 0.0,
        "bias": BIAS,
        "threads": default_threads(),
    }
    return filled_rates(options, found)


def _exact(options: ClassifyOptions, given: str) -> ClassifyOptions:
    """Return the options of the hinge loss, which only gd trains."""
    known = {"solver": ("sgd",), "objective": ("gd", "dcme", "auto")}
    for name, values in known.items():
        if (value := getattr(options, name)) not in values:
            raise UsageError(f"{given}: is not for {flag_of(name)} {value}")
    return replace(options, objective="gd")


def _of_trees(options: ClassifyOptions) -> ClassifyOptions:
    """Return the options of trees of labels with every default filled in."""
    known = {"solver": ("sgd",), "loss": (None, "hinge"), "patience": (None,)}
    for name, values in known.items():
        if (value := getattr(options, name)) not in values:
            raise UsageError(f"--objective=tree: is not for {flag_of(name)} {value}")
    found = {
        "loss": "hinge", "epochs": 5, "lr": RATE_OF_HINGE, "l2": L2_OF_SETS,
        "bias": BIAS, "threads": default_threads(),
    }  # fmt: skip
    return filled_rates(replace(options, objective="tree"), found)


def _has_dcme(options: ClassifyOptions) -> bool:
    """Return whether an option of dcme is given."""
    return options.clusters is not None or options.dcme_update == "paper"


def is_hinge_possible(options: ClassifyOptions) -> bool:
    """Return whether nothing that is given excludes the hinge loss."""
    linear = options.solver != "lbfgs" and options.objective == "auto"
    return linear and not _has_dcme(options)


def _chosen(options: ClassifyOptions, classes: int) -> ClassifyOptions:
    """Return the options with the objective that takes less time; an option of dcme selects it."""
    given = _has_dcme(options)
    if options.solver == "lbfgs" or (classes < FEW_CLASSES and not given):
        return replace(options, objective="gd")
    options = replace(options, objective="dcme")
    if options.dcme_update == "robust":
        options = filled(options, {"clusters": default_clusters(classes)})
    return options


def default_clusters(classes: int) -> int:
    """Return how many clusters the classes have: bounds and head cost about the same."""
    return int(min(4096, max(CLUSTERS, round(2 * classes**0.5))))


@dataclass(frozen=True)
class ShrinkOptions(Checked):
    """How the weights of a classifier are compressed."""

    group = "Model"

    removed = ("coding", "words")

    levels: int = option(8, "number of levels", minimum=1, maximum=MAX_LEVELS)
    keep: str | None = option(
        None,
        "keep N weights, or a share such as 0.1 or 1/20 (default: all)",
        metavar="N|SHARE",
        check=lambda keep: kept_weights(keep, 1 << 62),
    )
    max_bytes: int | None = option(
        None,
        "keep as many weights as fit into N bytes on disk; --holdout chooses the number of levels",
        minimum=1,
    )


def kept_weights(keep: str | None, total: int) -> int:
    """Return how many of `total` weights stay, given a number, a share or a fraction.

    Raises
    ------
    UsageError
        `keep` is no number or share, is 0, or is more than `total`.
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
                f"--keep={keep}: there are {total:,} weights; keep fewer, or a share of them"
            )
        return number
    if not 0 < share <= 1:
        raise UsageError(
            f"--keep={keep}: must be a number of weights, or a share such as 0.1 or 1/20"
        )
    return max(1, int(share * total))
