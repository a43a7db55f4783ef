"""The numbers that choose settings by the data, of all rooms.

Other defaults are at the options, parameters of a method at the method. results.csv has what
other values do, suite `constants`, on training documents.
"""

# ---- defaults of a training, for documents of unit length ----
RATE = 8.0  # of the softmax; with few classes half
FEW_CLASSES = 500  # with more, most are rare, and dcme takes no more time than gd
RATE_OF_HINGE = 0.5
TABLE_CLASSES = 5000  # with more, all of them take too long, and a table gigabytes
# ---- features ----
LEAD = 80  # titles and first sentences say what a document is about
MANY_FEATURES = 200_000
MANY_NUMBERS = 1 << 26  # of a table of features and classes, or of documents and labels
KEPT_BYTES = 1 << 23  # of texts, whose features are compared
SHORT_TEXT = 256  # mean bytes of a document; with few of these, words are rarely seen twice
# ---- the candidates ----
LONG = 10  # epochs at C = 1; up to LEARNED documents twice as many
FEW = 1000  # documents; with fewer, pairs are rare, and C_OF_FEW is better than C = 1
C_OF_FEW = 10
LOWER = 0.25  # times the rate, against wrong labels
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
SMALL = (1 << 16, 1 << 22)  # weights, all of which are written, and products, for L-BFGS
# ---- their comparison ----
FOLDS = 5
LEARNED = 20_000  # documents of a trial, at most; LEARNED / (FOLDS - 1) are held out
CERTAIN = 1500  # documents held out, in several folds; so many are enough
CLEARLY = 1.0  # standard errors of the difference by which another candidate has to be better
BALANCES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8)  # times the logarithm of a label's documents
# ---- few labels, small models ----
SEPARABLE = 0.75  # area under the curve, where unlabeled documents are of another domain
IDLE = 0.002  # share of the impact of all weights that no document misses
# ---- shards of word vectors ----
RAISED = 1.5  # times the learning rate of one machine
ROUNDS = 20
TOKENS_A_ROUND = 5_000_000  # of a shard
