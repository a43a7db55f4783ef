/* The rows of a word with subwords are updated along the gradient: against central differences of
 * the loss, in a corpus of two words.
 *
 * The first instance is the one whose loss is sampled. Its context is one word, whose rows no other
 * instance moves. The gradient of a mean of m rows has 1 / m in each; every row gets the whole.
 * Compiled with DCME_REAL=double.
 */
#include "train/internal.h"

#include "differences.h"

#include <stdlib.h>
#include <string.h>

enum { ITEMS = 2, BUCKETS = 5, ROWS = ITEMS + BUCKETS, DIM = 6, STRIDE = DCME_PAD };
static const double TINY_RATE = 1e-8;
static const uint32_t IDS[] = {0, 1 | DCME_SENTENCE_END};
static const int64_t COUNTS[ITEMS] = {1, 1}, STARTS[ITEMS + 1] = {0, 2, 5};
static const int32_t NGRAMS[] = {3, 1, 0, 2, 4}; /* of word 0, of word 1 */
static _Alignas(128) double input[ROWS * STRIDE], output[ITEMS * STRIDE];

static double random_number(uint64_t *seed) {
    return (double)(dcme_random(seed) >> 11) / (1ull << 52) - 1;
}

static void fill(void) {
    uint64_t seed = 7;
    for (int64_t i = 0; i < ROWS * STRIDE; i++)
        input[i] = i % STRIDE < DIM ? random_number(&seed) : 0;
    for (int64_t i = 0; i < ITEMS * STRIDE; i++)
        output[i] = i % STRIDE < DIM ? random_number(&seed) : 0;
}

/* Train one epoch and return the loss of its first instance. */
static double train(int32_t model, int32_t window_mode, int32_t gradient) {
    dcme_subwords subwords = {STARTS, NGRAMS, BUCKETS};
    dcme_corpus corpus = {IDS, 2, COUNTS, ITEMS, &subwords};
    dcme_train_options options = {.model = model,
                                  .objective = DCME_NS,
                                  .dim = DIM,
                                  .window = 1,
                                  .window_mode = window_mode,
                                  .negative = 6,
                                  .gradient = gradient,
                                  .epochs = 1,
                                  .lr = TINY_RATE,
                                  .min_lr = TINY_RATE,
                                  .input_rate = 1,
                                  .block = 1,
                                  .threads = 1};
    dcme_trainer *trainer = NULL;
    dcme_progress progress;
    if (dcme_trainer_open(&trainer, &options, &corpus, input, output, NULL, NULL, NULL) !=
            DCME_OK ||
        dcme_engine_epoch(dcme_trainer_engine(trainer), 0, NULL) != DCME_OK)
        abort();
    dcme_engine_progress(dcme_trainer_engine(trainer), &progress);
    dcme_trainer_close(trainer);
    return progress.loss;
}

static void check(int32_t model, int32_t window_mode, int32_t gradient) {
    /* skip-gram's first instance is of the first word, CBOW's of the second one's rows */
    int word = model == DCME_SKIPGRAM ? 0 : 1;
    int64_t rows[4] = {word}, count = 1;
    double found[4 * DIM], wanted[4 * DIM], before[ROWS * STRIDE];
    for (int64_t k = STARTS[word]; k < STARTS[word + 1]; k++)
        rows[count++] = ITEMS + NGRAMS[k];
    fill();
    memcpy(before, input, sizeof before);
    train(model, window_mode, gradient);
    for (int64_t i = 0; i < count * DIM; i++) {
        int64_t at = rows[i / DIM] * STRIDE + i % DIM;
        found[i] = (input[at] - before[at]) / TINY_RATE;
    }
    for (int64_t i = 0; i < count * DIM; i++) {
        int64_t at = rows[i / DIM] * STRIDE + i % DIM;
        double above, below;
        fill(), input[at] += EPSILON, above = train(model, window_mode, gradient);
        fill(), input[at] -= EPSILON, below = train(model, window_mode, gradient);
        wanted[i] = -(double)count * (above - below) / (2 * EPSILON);
    }
    expect("rows of a word", 100 * model + 10 * window_mode + gradient, found, wanted, count * DIM);
}

int main(void) {
    for (int32_t window_mode = DCME_SHRINK; window_mode <= DCME_FIXED; window_mode++)
        for (int32_t gradient = DCME_EXACT; gradient <= DCME_WORD2VEC; gradient++) {
            check(DCME_CBOW, window_mode, gradient);
            check(DCME_SKIPGRAM, window_mode, gradient);
        }
    return failures > 0;
}
