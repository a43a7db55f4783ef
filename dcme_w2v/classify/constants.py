"""The numbers that steer the choice of settings, all of them.

results.csv has what others do, suite `constants`, on training documents.
"""

# ---- defaults of a training, for documents of unit length ----
RATE = 8.0  # of the softmax; with few classes half
FEW_CLASSES = 500
RATE_OF_HINGE = 0.5
DCME_CLASSES = 1200  # from here dcme takes less time an epoch than gd
HINGE_CLASSES = 5000  # with more, all classes take too long for each document
TREE_CLASSES = 10_000  # from here a table of weights takes gigabytes
# ---- features ----
LEAD = 80  # titles and first sentences say what a document is about
LEAD_FEATURES = 40_000
MANY_FEATURES, MOST_WEIGHTS = 200_000, 1 << 26  # features, and features times classes, at most
KEPT_BYTES = 1 << 23  # of texts, whose features are compared
SHORT_TEXT = 256  # mean bytes of a document; with few of these, words are rarely seen twice
# ---- the candidates ----
LONG = 10  # epochs at C = 1; up to LEARNED documents twice as many
FEW = 1000  # documents; with fewer, pairs are rare, and C_OF_FEW is better than C = 1
C_OF_FEW = 10
BIAS_OF_SVM = 0.2  # for rows of unit length
RATE_OF_RARE = 2  # times the default at C = 1, from FEW_CLASSES classes on
LOWER = 0.25  # times the rate, against wrong labels
MANY_SETS = 1 << 24  # documents times labels, several a document; above, two rates are compared
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SMALL = (1 << 16, 1 << 22)  # weights and products, where L-BFGS takes a second at most
# ---- their comparison ----
FOLDS = 5
LEARNED = 20_000  # documents of a trial, at most; LEARNED / (FOLDS - 1) are held out
CERTAIN = 1500  # documents held out, in several folds; so many are enough
CLEARLY = 1.0  # standard errors of the difference by which another candidate has to be better
