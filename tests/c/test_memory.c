/* Every allocation of training and of the vocabulary fails once, and each failure is reported, with
 * nothing leaked: the program has an aligned_alloc() of its own. Meant for the sanitizers.
 *
 * Compile it with all of csrc; include path csrc. Returns 0 on success.
 */
#define _POSIX_C_SOURCE 200112L

#include "text/text.h"
#include "train/train.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 50, LENGTH = 3000, DIM = 8, CLUSTERS = 3 };

static int64_t left; /* allocations until one fails */

void *aligned_alloc(size_t alignment, size_t size) {
    void *memory = NULL;
    if (left-- == 0)
        return NULL;
    errno = posix_memalign(&memory, alignment, size);
    return memory;
}

static dcme_train_options options_of(int32_t objective, int32_t dcme_update) {
    return (dcme_train_options){.model = DCME_CBOW,
                                .objective = objective,
                                .dim = DIM,
                                .window = 3,
                                .window_mode = DCME_LINEAR,
                                .negative = 4,
                                .noise_power = 0.75,
                                .prior = 0.5,
                                .clusters = CLUSTERS,
                                .top_items = 5,
                                .beta = 1,
                                .dcme_update = dcme_update,
                                .epochs = 1,
                                .sample = 1e-3,
                                .lr = 0.01,
                                .min_lr = 0.001,
                                .input_rate = 1,
                                .threads = 2};
}

static dcme_status train(const dcme_train_options *options, const dcme_corpus *corpus, real *tables,
                         dcme_error *error) {
    dcme_trainer *trainer = NULL;
    int64_t size = corpus->items * dcme_stride(options->dim);
    dcme_status status =
        dcme_trainer_open(&trainer, options, corpus, tables, tables + size, NULL, error);
    if (status == DCME_OK) {
        status = dcme_trainer_epoch(trainer, 0, error);
        dcme_trainer_close(trainer);
    }
    return status;
}

/* Fail the first allocation, the second, and so on; return how many there are, or -1. */
static int64_t fail_each(const dcme_train_options *options, const dcme_corpus *corpus,
                         real *tables) {
    for (int64_t at = 0;; at++) {
        dcme_error error = {0};
        left = at;
        dcme_status status = train(options, corpus, tables, &error);
        if (status == DCME_OK && left >= 0)
            return at;
        if (status == DCME_OK && options->objective == DCME_DCME)
            continue; /* an alias table stays the old one where there is no memory for another */
        if (status != DCME_NO_MEMORY || !strstr(error.message, "bytes: ")) {
            printf("allocation %lld: status %d, %s\n", (long long)at, status, error.message);
            return -1;
        }
    }
}

static int check_training(void) {
    static uint32_t ids[LENGTH];
    static int64_t counts[ITEMS];
    int64_t size = 2 * ITEMS * dcme_stride(DIM), allocations = 0;
    real *tables = NULL;
    if (posix_memalign((void **)&tables, DCME_LINE, (size_t)size * sizeof *tables) != 0)
        return 0;
    for (int64_t i = 0; i < LENGTH; i++) {
        ids[i] = (uint32_t)(i * i % ITEMS) | (i % 20 == 19 ? DCME_SENTENCE_END : 0);
        counts[i * i % ITEMS]++;
    }
    for (int64_t i = 0; i < ITEMS; i++)
        counts[i]++;
    dcme_corpus corpus = {ids, LENGTH, counts, ITEMS};
    dcme_train_options all[] = {options_of(DCME_NS, 0), options_of(DCME_NCE, 0),
                                options_of(DCME_DCME, DCME_ROBUST),
                                options_of(DCME_DCME, DCME_PAPER)};
    int good = 1;
    for (int i = 0; i < 4 && good; i++) {
        memset(tables, 0, (size_t)size * sizeof *tables);
        int64_t found = fail_each(&all[i], &corpus, tables);
        good = found > 0;
        allocations += found;
    }
    free(tables);
    printf("memory: %lld allocations of training failed once each\n", (long long)allocations);
    return good;
}

/* A word longer than any chunk, and its respelling, which are what takes memory by aligned_alloc.
 */
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
        dcme_status status = dcme_vocabulary_open(&from, &error);
        if (status == DCME_OK)
            status = dcme_vocabulary_open(&to, &error);
        if (status == DCME_OK)
            status = dcme_vocabulary_add(from, word, LONG, 1, &id, &error);
        if (status == DCME_OK)
            status = dcme_vocabulary_absorb(to, from, 0, 1, DCME_REPLACE, map, &repairs, &error);
        good = status == (at < 3 ? DCME_NO_MEMORY : DCME_OK);
        dcme_vocabulary_close(from);
        dcme_vocabulary_close(to);
    }
    free(word);
    return good;
}

int main(void) {
    int good = check_training() & check_vocabulary();
    left = -1;
    return good ? 0 : 1;
}
