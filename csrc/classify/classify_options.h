/* The training options of a classifier. Python passes each of these fields. */
#pragma once

#include <stdint.h>

/* Values of --objective, in the order of `choices` in the Python declaration. */
enum { DCME_CLASSIFY_GD, DCME_CLASSIFY_DCME, DCME_CLASSIFY_NCE, DCME_CLASSIFY_NS };

/* Values of --dcme-update and of --loss, also in the order of their `choices` in Python. */
enum { DCME_ROBUST, DCME_PAPER };
enum { DCME_CLASSIFY_SOFTMAX, DCME_CLASSIFY_HINGE };

typedef struct {
    int32_t objective;
    int32_t loss; /* for GD */
    int32_t dual; /* minimize the hinge loss in the dual problem (requires l2 > 0) */
    int32_t negative;
    double noise_power;
    int32_t class_clusters;
    int32_t exact_clusters;
    int32_t draws;
    double center_interval;
    int32_t clusters;
    int32_t top_items;
    double beta;
    int32_t dcme_update;
    int32_t batch;
    int32_t epochs;
    double lr;
    double min_lr;
    double l2;
    int32_t threads;
    int64_t seed;
} dcme_classify_options;
