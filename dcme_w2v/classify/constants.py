"""Constants for settings that are chosen according to the data, in all packages.

Other defaults are declared with their options, and parameters of a method beside the method. The
suite `constants` in results.csv shows the effect of other values on training documents.
"""

# ---- defaults of a training, for documents of unit length ----
RATE = 8.0  # learning rate for the softmax; halved if there are few classes
FEW_CLASSES = 500  # if there are more classes, most are rare, and dcme is as fast as gd
RATE_OF_HINGE = 0.5
TABLE_CLASSES = 5000  # with more labels, a weight table takes gigabytes and much time
# ---- features ----
LEAD = 80  # titles and first sentences say what a document is about
MANY_FEATURES = 200_000
MANY_NUMBERS = 1 << 26  # maximum size of a features-by-classes or documents-by-labels table
KEPT_BYTES = 1 << 23  # maximum bytes of texts that are kept to compare features
SHORT_TEXT = 256  # mean bytes per document; words rarely repeat in fewer bytes
# ---- the candidates ----
LONG = 10  # number of epochs at C = 1; doubled for up to TRIAL_DOCUMENTS documents
FEW = 1000  # with fewer documents, C_OF_FEW beats C = 1
C_OF_FEW = 10
LOWER = 0.25  # factor of the learning rate that resists wrong labels
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# With more weights a model is compressed; with more products L-BFGS is not the default solver.
SMALL = (1 << 16, 1 << 22)
# ---- their comparison ----
FOLDS = 3
TRIAL_DOCUMENTS = 20_000  # maximum number per trial; TRIAL_DOCUMENTS / (FOLDS - 1) are held out
CERTAIN = 1500  # sufficient number of held-out documents over all folds
CLEARLY = 1.0  # number of standard errors by which another candidate must be better
BALANCES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8)  # factors of the logarithm of a label's document count
# ---- few labels, small models ----
SEPARABLE = 0.75  # above this area under the curve, unlabeled documents differ in domain
IDLE_IMPACT = 0.02  # weights that together have this share of the impact can be dropped
# ---- shards of word vectors ----
RAISED = 1.5  # learning rate on a cluster, relative to the rate on one machine
ROUNDS = 20
TOKENS_A_ROUND = 5_000_000  # maximum tokens per shard and round
