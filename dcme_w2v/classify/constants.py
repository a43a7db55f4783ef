"""Constants that decide which training settings are chosen for the data.

Other defaults are declared with their options, and parameters of a method beside the method. The
suite `constants` in results.csv shows the effect of other values on training documents.
"""

# ---- training defaults for documents of unit length ----
# Learning rate for the softmax loss; with fewer than FEW_CLASSES classes, half of it is used.
RATE = 8.0
# With at least this many classes, the default learning rate is doubled, because most classes are
# usually rare, and the default objective is dcme, because it trains as fast as gd.
FEW_CLASSES = 500
RATE_OF_HINGE = 0.5
# With more labels than this, a table of all weights takes gigabytes and is slow to train.
TABLE_CLASSES = 5000
# ---- features ----
LEAD = 80  # the first LEAD words of a document usually state its topic
MANY_FEATURES = 200_000
# Maximum number of entries in a features-by-classes or documents-by-labels table.
MANY_NUMBERS = 1 << 26
KEPT_BYTES = 1 << 23  # maximum size in bytes of the texts kept in memory for comparing feature sets
SHORT_TEXT = 256  # if texts average at most this many bytes, words rarely repeat within a text
# ---- candidate settings ----
LONG = 10  # number of training epochs with C = 1; small data sets need twice as many
# With fewer documents than this, C = C_OF_FEW gives more accurate models than C = 1.
FEW = 1000
C_OF_FEW = 10
# The candidate that is robust to wrong labels trains with this fraction of the learning rate.
LOWER = 0.25
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Models with more than SMALL[0] weights are compressed.
# L-BFGS is the default only if an iteration takes at most SMALL[1] multiplications.
SMALL = (1 << 16, 1 << 22)
# Rare classes whose documents have high weights need a low C.
# C is also chosen from LOW_STRENGTHS if document weights differ by more than a factor of UNEQUAL.
LOW_STRENGTHS, UNEQUAL = (0.01, 0.001), 10.0
# ---- comparison of candidates ----
FOLDS = 3
TRIAL_DOCUMENTS = 20_000  # maximum number of training documents per trial
# Trials of the dual solver run this fraction of the epochs, because predictions are good before the
# weights converge.
TRIAL_EPOCHS = 0.5
# This many held-out documents, in all folds together, suffice to compare settings.
CERTAIN = 1500
# A candidate replaces the default if it is better by at least this many standard errors.
CLEARLY = 1.0
# A label's score is raised by one of these factors times log(highest count / the label's count).
BALANCES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8)
# ---- few labels and compressed models ----
# Labeled and unlabeled documents count as different if a classifier separates them with an ROC AUC
# above this limit.
SEPARABLE = 0.75
# Weights can be dropped if their combined impact is at most this fraction of the total impact.
IDLE_IMPACT = 0.005
# ---- word vectors trained on shards ----
RAISED = 1.5  # learning rate on a cluster, as a multiple of the learning rate on one machine
ROUNDS = 20
TOKENS_A_ROUND = 5_000_000  # maximum number of tokens per shard and round
