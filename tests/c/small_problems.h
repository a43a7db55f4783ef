/* A small corpus and a small labeled collection, for tests that train. */
#ifndef SMALL_PROBLEMS_H
#define SMALL_PROBLEMS_H

#include "classify/classify.h"
#include "words/train.h"

#include <string.h>

#ifndef LARGER /* longer vectors and documents */
#define LARGER 1
#endif
enum { WORD_COUNT = 60, TOKENS = 12000, DIM = 8 * LARGER };
enum { CLASSES = 40, CLASS_STRIDE = 48, FEATURES = 30, DOCUMENTS = 700, ENTRIES = 5 * LARGER };

static const char *kernels_name = NULL; /* the fastest */

static uint32_t ids[TOKENS];
static int64_t word_counts[WORD_COUNT];
static _Alignas(128) real tables[2 * WORD_COUNT * (DIM + DCME_PAD)];
static int64_t starts[DOCUMENTS + 1], document_of[DOCUMENTS], class_counts[CLASSES];
static int32_t features[DOCUMENTS * ENTRIES], labels[DOCUMENTS];
static real values[DOCUMENTS * ENTRIES];
static _Alignas(128) real weights[(FEATURES + 1) * CLASS_STRIDE];

static uint32_t small_number(uint32_t limit) {
    static uint64_t random = 1;
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random >> 33) % limit;
}

static inline void make_problems(void) {
    for (int64_t i = 0; i < TOKENS; i++) {
        uint32_t a = small_number(WORD_COUNT), b = small_number(WORD_COUNT);
        ids[i] = (a < b ? a : b) | (i % 17 == 16 ? DCME_SENTENCE_END : 0);
        word_counts[a < b ? a : b]++;
    }
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        for (int64_t i = d * ENTRIES; i < (d + 1) * ENTRIES; i++) {
            features[i] = (int32_t)small_number(FEATURES);
            values[i] = (real)(1 + small_number(4)) / 4;
        }
        starts[d + 1] = (d + 1) * ENTRIES;
        document_of[d] = d;
        labels[d] = (int32_t)(d % CLASSES);
        class_counts[d % CLASSES]++;
    }
}

/* Negative sampling, NCE, DCME, NCE with virtual samples, and these in blocks where supported. */
enum { FORMS = 5 };
static inline int32_t objective_of(int32_t form) { return form <= DCME_DCME ? form : DCME_NCE; }
static inline int32_t block_of(int32_t form, int32_t model, int32_t window_mode) {
    return form == 4 && model == DCME_CBOW && window_mode != DCME_SHRINK ? 16 : 1;
}

static inline dcme_train_options word_options(int32_t model, int32_t window_mode, int32_t form,
                                              int32_t threads) {
    return (dcme_train_options){.model = model,
                                .objective = objective_of(form),
                                .dim = DIM,
                                .window = 3,
                                .window_mode = window_mode,
                                .negative = 4,
                                .noise_power = 0.75,
                                .virtual_samples = form > DCME_DCME ? 2 : 1,
                                .prior = 0.5,
                                .clusters = 4,
                                .top_items = 5,
                                .beta = 0.5,
                                .epochs = 2,
                                .sample = 1e-2,
                                .lr = 0.01,
                                .min_lr = 0.001,
                                .block = block_of(form, model, window_mode),
                                .threads = threads};
}

enum { CLASS_FORMS = 5 }; /* softmax SGD, DCME, NCE, NS, and DCME of the paper */
static inline dcme_classify_options class_options(int32_t form, int32_t threads) {
    return (dcme_classify_options){.objective = form < 4 ? form : DCME_CLASSIFY_DCME,
                                   .negative = 4,
                                   .noise_power = 0.75,
                                   .class_clusters = 3,
                                   .exact_clusters = 1,
                                   .draws = 1,
                                   .center_interval = 0.2,
                                   .clusters = 3,
                                   .top_items = 1,
                                   .beta = 0.2,
                                   .dcme_update = form == 4 ? DCME_PAPER : DCME_ROBUST,
                                   .batch = 16,
                                   .epochs = 2,
                                   .lr = 0.1,
                                   .min_lr = 0.001,
                                   .l2 = 1e-4,
                                   .threads = threads};
}

static inline dcme_status open_words(dcme_trainer **trainer, const dcme_train_options *options,
                                     dcme_error *error) {
    dcme_corpus corpus = {ids, TOKENS, word_counts, WORD_COUNT, NULL};
    memset(tables, 0, sizeof tables);
    dcme_table_initialize(tables, WORD_COUNT, DIM, 1);
    return dcme_trainer_open(trainer, options, &corpus, tables,
                             tables + WORD_COUNT * dcme_stride(DIM), NULL, kernels_name, error);
}

static inline dcme_status open_classes(dcme_classifier **classifier,
                                       const dcme_classify_options *options, dcme_error *error) {
    dcme_sparse_rows documents = {starts, features, values, DOCUMENTS};
    dcme_instances instances = {document_of, labels, DOCUMENTS, NULL, NULL};
    const dcme_kernels *kernels = dcme_kernels_choose(kernels_name);
    dcme_linear model = {CLASSES, CLASS_STRIDE, FEATURES, 1, weights, kernels};
    memset(weights, 0, sizeof weights);
    return dcme_classifier_open(classifier, options, &documents, &instances, class_counts, &model,
                                error);
}

#endif
