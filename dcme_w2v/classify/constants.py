"""Constants that determine which settings are chosen for the data.

Other defaults are declared with their options, and parameters of a method beside the method. The
suite `constants` in results.csv shows the effect of other values on training documents.
"""

# ---- training defaults for documents of unit length ----
RATE = 8.0  # learning rate for the softmax; with few classes, half this rate is used
FEW_CLASSES = 500  # with more classes than this, most are rare, and dcme is as fast as gd
RATE_OF_HINGE = 0.5
TABLE_CLASSES = 5000  # with more labels than this, a weight table takes gigabytes and trains slowly
# ---- features ----
LEAD = 80  # the first LEAD words of a document usually state its topic
MANY_FEATURES = 200_000
# Maximum number of entries in a features-by-classes or documents-by-labels table.
MANY_NUMBERS = 1 << 26
KEPT_BYTES = 1 << 23  # maximum size in bytes of the texts that are kept to compare features
SHORT_TEXT = 256  # in documents with fewer bytes than this on average, words rarely repeat
# ---- candidate settings ----
LONG = 10  # number of epochs at C = 1, which is doubled for few documents
FEW = 1000  # with fewer documents than this, C = C_OF_FEW gives better results than C = 1
C_OF_FEW = 10
LOWER = 0.25  # factor that lowers the learning rate to resist wrong labels
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Models with more weights than the first number are compressed.
# L-BFGS is not the default if an iteration takes more multiplications than the second number.
SMALL = (1 << 16, 1 << 22)
# Rare classes with high weights need a low C.
# These candidates for C are added if document weights differ by more than a factor of UNEQUAL.
LOW_STRENGTHS, UNEQUAL = (0.01, 0.001), 10.0
# ---- comparison of candidates ----
FOLDS = 3
TRIAL_DOCUMENTS = 20_000  # maximum number of training documents per trial
CERTAIN = 1500  # number of held-out documents, in all folds together, that suffice
CLEARLY = 1.0  # number of standard errors by which another candidate must be better
# Candidate factors for the logarithm of a label's document count.
BALANCES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8)
# ---- few labels, small models ----
SEPARABLE = 0.75  # an area under the curve above this shows that the unlabeled documents differ
# Weights can be dropped if their impacts add up to at most this fraction of the total impact.
IDLE_IMPACT = 0.005
# ---- word vectors trained on shards ----
RAISED = 1.5  # learning rate on a cluster, relative to the rate on one machine
ROUNDS = 20
TOKENS_A_ROUND = 5_000_000  # maximum number of tokens per shard and round
