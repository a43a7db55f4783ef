"""Constants behind the settings that are chosen for the data.

Other defaults are declared with their options, and parameters of a method beside the method. The
suite `constants` in results.csv shows the effect of other values on training documents.
"""

# ---- training defaults for documents of unit length ----
RATE = 8.0  # learning rate of the softmax loss, which is halved if there are few classes
FEW_CLASSES = 500  # with more classes than this, most classes are rare, and dcme is as fast as gd
RATE_OF_HINGE = 0.5
# With more labels than this, a weight table takes gigabytes and trains slowly.
TABLE_CLASSES = 5000
# ---- features ----
LEAD = 80  # the first LEAD words of a document usually state its topic
MANY_FEATURES = 200_000
# Maximum number of entries in a features-by-classes or documents-by-labels table.
MANY_NUMBERS = 1 << 26
KEPT_BYTES = 1 << 23  # maximum bytes of text that are kept in memory to compare features
SHORT_TEXT = 256  # in texts shorter than this many bytes on average, words rarely repeat
# ---- candidate settings ----
LONG = 10  # number of epochs at C = 1 (twice as many with few documents)
FEW = 1000  # with fewer documents than this, C = C_OF_FEW gives better results than C = 1
C_OF_FEW = 10
LOWER = 0.25  # learning-rate factor of the candidate that is robust to wrong labels
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Models with more than SMALL[0] weights are compressed.
# L-BFGS is the default only if an iteration takes at most SMALL[1] multiplications.
SMALL = (1 << 16, 1 << 22)
# Rare classes whose documents have high weights need a low C.
# These values of C are tried if document weights differ by more than a factor of UNEQUAL.
LOW_STRENGTHS, UNEQUAL = (0.01, 0.001), 10.0
# ---- comparison of candidates ----
FOLDS = 3
TRIAL_DOCUMENTS = 20_000  # maximum number of training documents per trial
CERTAIN = 1500  # number of held-out documents (in all folds together) that suffice for a comparison
CLEARLY = 1.0  # a candidate replaces the default if it is better by this many standard errors
# A label's score is offset by one of these factors times the log of its document count.
BALANCES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8)
# ---- few labels and compressed models ----
SEPARABLE = 0.75  # above this ROC AUC, unlabeled documents differ from labeled ones
# Weights can be dropped if their impacts add up to at most this fraction of the total impact.
IDLE_IMPACT = 0.005
# ---- word vectors trained on shards ----
RAISED = 1.5  # learning rate on a cluster, relative to the rate on one machine
ROUNDS = 20
TOKENS_A_ROUND = 5_000_000  # maximum number of tokens per shard and round
