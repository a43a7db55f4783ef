/* Every allocation of training, of the vocabulary and of pairs fails once; each failure is reported
 * with the requested bytes and without leaks: the program has its own dcme_system_allocate(), and
 * is linked without csrc/platform.c, which it includes. Meant for the sanitizers.
 *
 * Compile it with all of csrc; include path csrc. Returns 0 on success.
 */
#define dcme_system_allocate allocate_aligned
#include "platform.c"
#undef dcme_system_allocate

#include "small_problems.h"
#include "text/phrases.h"
#include "text/text.h"

#include <stdio.h>

static int64_t left; /* allocations until one fails */
static size_t failed_size;

void *dcme_system_allocate(size_t bytes) {
    if (left-- == 0) {
        failed_size = bytes;
        return NULL;
    }
    return allocate_aligned(bytes);
}

static dcme_status train_words(int32_t form, dcme_error *error) {
    dcme_train_options options = word_options(DCME_CBOW, DCME_FIXED, form, 2);
    dcme_trainer *trainer = NULL;
    dcme_status status = open_words(&trainer, &options, error);
    if (status == DCME_OK)
        status = dcme_engine_epoch(dcme_trainer_engine(trainer), 0, error);
    dcme_trainer_close(trainer);
    return status;
}

/* Two n-grams for each word, with negative sampling. */
static dcme_status train_subwords(int32_t model, dcme_error *error) {
    enum { BUCKETS = 7, ROWS = WORD_COUNT + BUCKETS };
    static _Alignas(128) real input[ROWS * DCME_PAD], output[WORD_COUNT * DCME_PAD];
    static int64_t word_starts[WORD_COUNT + 1];
    static int32_t ngrams[2 * WORD_COUNT];
    dcme_subwords subwords = {word_starts, ngrams, BUCKETS};
    dcme_corpus corpus = {ids, TOKENS, word_counts, WORD_COUNT, &subwords};
    dcme_train_options options = word_options(model, DCME_SHRINK, DCME_NS, 2);
    dcme_trainer *trainer = NULL;
    for (int32_t i = 0; i < 2 * WORD_COUNT; i++)
        ngrams[i] = i % BUCKETS, word_starts[i / 2 + 1] = i + 1;
    dcme_table_initialize(input, ROWS, DIM, 1);
    memset(output, 0, sizeof output);
    dcme_status status =
        dcme_trainer_open(&trainer, &options, &corpus, input, output, NULL, NULL, error);
    if (status == DCME_OK)
        status = dcme_engine_epoch(dcme_trainer_engine(trainer), 0, error);
    dcme_trainer_close(trainer);
    return status;
}

static dcme_status train_classes(int32_t form, dcme_error *error) {
    double loss;
    dcme_sparse_rows documents = {starts, features, values, DOCUMENTS};
    dcme_instances instances = {document_of, labels, DOCUMENTS, NULL, NULL};
    dcme_linear model = {CLASSES, CLASS_STRIDE, FEATURES, 1, weights, &dcme_kernels_scalar};
    dcme_classify_options options = class_options(form, 2);
    dcme_classifier *classifier = NULL;
    dcme_status status = open_classes(&classifier, &options, error);
    if (status == DCME_OK)
        status = dcme_engine_epoch(dcme_classifier_engine(classifier), 0, error);
    dcme_classifier_close(classifier);
    if (status == DCME_OK) {
        dcme_exact_problem problem = {&documents, &instances, NULL, NULL};
        status = dcme_classify_gradient(&loss, NULL, &model, &problem, 2, error);
    }
    return status;
}

static dcme_status count_pairs(int32_t form, dcme_error *error) {
    static uint8_t roles[WORD_COUNT];
    dcme_pairs *pairs = NULL;
    memset(roles, DCME_ROLE_SIDE, sizeof roles);
    dcme_status status = dcme_pairs_open(&pairs, INT64_C(1) << 30, 0, 0, error);
    if (status == DCME_OK)
        status = dcme_pairs_count(pairs, ids, TOKENS, roles, error);
    dcme_pairs_close(pairs);
    return status;
}

/* Fail the first allocation, the second, and so on; return how many there are, or -1. */
static int64_t fail_each(dcme_status (*train)(int32_t, dcme_error *), int32_t form) {
    for (int64_t at = 0;; at++) {
        dcme_error error = {0};
        left = at;
        dcme_status status = train(form, &error);
        if (status == DCME_OK && left >= 0)
            return at;
        if (status != DCME_NO_MEMORY || !strstr(error.message, "bytes: ") ||
            error.where + DCME_LINE < (int64_t)failed_size) {
            printf("allocation %lld of %lld bytes: status %d, %s\n", (long long)at,
                   (long long)failed_size, status, error.message);
            return -1;
        }
    }
}

static int check_training(void) {
    int64_t allocations = 0;
    int good = 1;
    for (int32_t i = 0; i < FORMS + CLASS_FORMS && good; i++) {
        int64_t found = i < FORMS ? fail_each(train_words, i) : fail_each(train_classes, i - FORMS);
        good = found > 0;
        allocations += found;
    }
    for (int32_t model = DCME_CBOW; model <= DCME_SKIPGRAM && good; model++) {
        int64_t found = fail_each(train_subwords, model);
        good = found > 0;
        allocations += found;
    }
    printf("memory: %lld allocations of training failed once each\n", (long long)allocations);
    return good;
}

/* A word longer than any chunk, and its replacement spelling, which call
 * dcme_system_allocate(). */
static int check_vocabulary(void) {
    enum { LONG = 3 << 20 };
    char *word = malloc(LONG);
    uint32_t map[1];
    int good = word != NULL;
    for (int64_t at = 0; at < 4 && good; at++) {
        dcme_vocabulary *from = NULL, *to = NULL;
        dcme_repairs repairs = {0};
        dcme_error error = {0};
        uint32_t id;
        memset(word, 0xff, LONG);
        left = at;
        dcme_status status = dcme_vocabulary_open(&from, 1, &error);
        if (status == DCME_OK)
            status = dcme_vocabulary_open(&to, 2, &error);
        if (status == DCME_OK)
            status = dcme_vocabulary_add(from, word, LONG, 1, &id, &error);
        if (status == DCME_OK)
            status = dcme_vocabulary_merge(to, from, 0, 1, DCME_REPLACE, map, &repairs, &error);
        good = status == (at < 3 ? DCME_NO_MEMORY : DCME_OK);
        dcme_vocabulary_close(from);
        dcme_vocabulary_close(to);
    }
    free(word);
    return good;
}

int main(void) {
    make_problems();
    int good = check_training() & check_vocabulary() & (fail_each(count_pairs, 0) > 1);
    left = -1;
    return good ? 0 : 1;
}
