/* The training options; the fields are those of TrainOptions in the Python package. */
#pragma once

#include <stdint.h>

/* Values of the options with a fixed set of choices, in the order of `choices` in the Python
 * declarations. */
enum { DCME_CBOW, DCME_SKIPGRAM };
enum { DCME_NS, DCME_NCE, DCME_DCME, DCME_HS };
enum { DCME_SHRINK, DCME_FIXED };
enum { DCME_EXACT, DCME_WORD2VEC };
enum { DCME_COUNT, DCME_EQUAL };

typedef struct {
    int32_t model;
    int32_t objective;
    int32_t dim;
    int32_t window;
    int32_t window_mode;
    int32_t negative;
    double noise_power;
    double virtual_samples;
    double prior;
    int32_t clusters;
    int32_t top_items;
    double beta;
    int32_t epochs;
    double sample;
    double lr;
    double min_lr;
    int32_t rates;
    int32_t gradient;
    int32_t word_order;
    int32_t block;
    int32_t threads;
    int64_t seed;
    int32_t deterministic;
} dcme_train_options;
