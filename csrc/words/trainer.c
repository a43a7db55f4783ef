/* Opens and closes the training of word vectors. */
#include "words/internal.h"

#include <math.h>

void dcme_table_initialize(real *table, int64_t items, int64_t dim, int64_t seed) {
    int64_t stride = dcme_row_stride(items, dim);
    for (int64_t i = 0; i < items; i++) {
        uint64_t stream = dcme_stream(seed, 0, i, DCME_INITIAL);
        for (int64_t d = 0; d < stride; d++)
            table[i * stride + d] =
                d < dim ? ((real)(dcme_random(&stream) >> 40) / 16777216 - (real)0.5) / (real)dim
                        : 0;
    }
}

/* Minimum factor of the learning rate if rates depend on counts; the maximum factor is its
 * inverse. */
static const double LEAST_RATE = 0.25;

/* Return the probability that a word with share f of the tokens is kept, sqrt(s / f) + s / f as in
 * word2vec.c. */
static void fill_keep(uint32_t *keep, const dcme_corpus *corpus, double sample) {
    double words = 0;
    for (int64_t i = 0; i < corpus->items; i++)
        words += corpus->counts[i];
    for (int64_t i = 0; i < corpus->items; i++) {
        double ratio = sample * words / corpus->counts[i];
        double p = sqrt(ratio) + ratio;
        keep[i] = p >= 1 ? UINT32_MAX : (uint32_t)(p * 4294967295.0);
    }
}

/* Return the number of a word's tokens that remain after subsampling. */
static double kept_count(const dcme_trainer *t, int64_t word) {
    return (double)t->corpus.counts[word] * (t->keep ? t->keep[word] / 4294967295.0 : 1);
}

/* Return the count of the word to which the median token belongs after subsampling. */
static double median_count(const dcme_trainer *t) {
    double total = 0, below = 0;
    int64_t median = 0;
    for (int64_t i = 0; i < t->corpus.items; i++)
        total += kept_count(t, i);
    while (median + 1 < t->corpus.items && (below += kept_count(t, median)) < total / 2)
        median++;
    return (double)t->corpus.counts[median];
}

/* With a decaying rate, the best step size is inversely proportional to the square root of the
 * number of steps of a row: with smaller steps the row does not converge, and with larger steps it
 * keeps the noise of its last steps. */
static void fill_factors_by_count(real *factors, const dcme_trainer *t) {
    double median = median_count(t), counts[DCME_RATE_BUCKETS] = {0},
           words[DCME_RATE_BUCKETS] = {0};
    for (int64_t i = 0; i < t->corpus.items; i++) {
        counts[dcme_rate_index(i)] += (double)t->corpus.counts[i];
        words[dcme_rate_index(i)]++;
    }
    for (int64_t r = 0; r < DCME_RATE_BUCKETS; r++) {
        double rate = t->options.rates == DCME_COUNT ? sqrt(median * words[r] / counts[r]) : 1;
        factors[r] = (real)fmin(fmax(rate, LEAST_RATE), 1 / LEAST_RATE);
    }
}

/* Whether targets can be trained in blocks whose length is given in the options. */
static int has_blocks_of(const dcme_train_options *options, const dcme_corpus *corpus) {
    int sliding = options->model == DCME_CBOW && options->window_mode != DCME_SHRINK;
    return options->block == 1 ||
           (options->block > 1 && options->block <= DCME_BLOCK_MAX && sliding && !corpus->subwords);
}

static dcme_status open_parts(dcme_trainer *t, dcme_error *error) {
    const dcme_purpose shared = {"what the threads share",
                                 "lower --max-vocab or --clusters, or raise --min-count"};
    const dcme_corpus *corpus = &t->corpus;
    dcme_arena *arena = &t->engine.arena;
    DCME_TRY(dcme_engine_open(&t->engine, error));
    if (!dcme_has_words_only(corpus))
        return dcme_fail(error, DCME_BAD_ARGUMENT, corpus->items,
                         "a token ID has no word in the vocabulary");
    if (corpus->subwords && !dcme_subwords_valid(corpus->subwords, corpus->items))
        return dcme_fail(error, DCME_BAD_ARGUMENT, 0, "an n-gram has no row");
    if (t->options.sample > 0)
        DCME_TAKE(arena, t->keep, corpus->items);
    if (t->keep)
        fill_keep(t->keep, corpus, t->options.sample);
    real *factors = dcme_take(arena, DCME_RATE_BUCKETS, sizeof *factors);
    t->model.rate_factors = factors;
    if (factors)
        fill_factors_by_count(factors, t);
    t->starts = dcme_shards_cut(&t->engine, corpus);
    if (t->options.objective == DCME_HS)
        dcme_tree_open(&t->tree, arena, corpus->counts, corpus->items);
    else if (t->options.objective == DCME_DCME)
        dcme_clusters_open(&t->clusters, arena, &t->model, &t->options);
    else
        dcme_word_noise_open(&t->noise, arena, &t->model, &t->options);
    DCME_TRY(dcme_arena_check(arena, shared, error));
    t->engine.worst = t->noise.alias ? dcme_untrained_loss(&t->noise, &t->options)
                      : t->options.objective == DCME_HS
                          ? (double)t->tree.longest * dcme_softplus(0)
                          : dcme_clusters_untrained_loss(&t->clusters);
    DCME_TRY(dcme_engine_open_workers(&t->engine, error));
    dcme_release_freed(); /* temporary memory for counting, and the weights of the noise
                             distribution */
    return DCME_OK;
}

dcme_status dcme_trainer_open(dcme_trainer **trainer, const dcme_train_options *options,
                              const dcme_corpus *corpus, real *input, real *output,
                              real *const *neighbors, const char *kernels, dcme_error *error) {
    dcme_trainer *t = *trainer = dcme_allocate_zeros(1, sizeof *t);
    if (!t)
        return dcme_no_memory(error, sizeof *t, "a trainer", "end other programs");
    t->options = *options;
    if (options->deterministic)
        t->options.threads = 1; /* with several threads, the result depends on timing */
    t->corpus = *corpus;
    int64_t items = corpus->items;
    int64_t rows = items + (corpus->subwords ? corpus->subwords->buckets : 0);
    int64_t stride = dcme_row_stride(rows, options->dim);
    t->model = (dcme_model){.items = items,
                            .stride = stride,
                            .input = input,
                            .output = output,
                            .counts = corpus->counts,
                            .kernels = dcme_kernels_choose(kernels)};
    if ((uint32_t)options->objective > DCME_HS || !t->model.kernels)
        return dcme_fail(error, DCME_BAD_ARGUMENT, 0,
                         "unknown objective, or kernels that this processor lacks");
    if (!has_blocks_of(options, corpus))
        return dcme_fail(error, DCME_BAD_ARGUMENT, options->block,
                         "blocks of this length, or this window or model, are not supported");
    t->model.size = dcme_row_size(t->model.kernels, options->dim, stride);
    t->engine = (dcme_engine){
        .work = &dcme_train_work,
        .job = t,
        .thread_count = t->options.threads,
        .schedule = {options->lr, options->min_lr, corpus->length, options->epochs},
        .tables = {{input, rows, stride}, {output, items, stride}},
        .row_name = "vector",
    };
    for (int side = 0; options->word_order && side < 2; side++) {
        t->model.neighbors[side] = neighbors[side];
        t->engine.tables[2 + side] = (dcme_table){neighbors[side], items, stride};
    }
    return open_parts(t, error);
}

dcme_engine *dcme_trainer_engine(dcme_trainer *t) { return &t->engine; }

int64_t dcme_trainer_clusters(const dcme_trainer *t) { return t->clusters.count; }

void dcme_trainer_center(const dcme_trainer *t, int64_t k, real *alpha) {
    dcme_clusters_center(&t->clusters, k, alpha);
}

void dcme_trainer_close(dcme_trainer *t) {
    if (t)
        dcme_engine_close(&t->engine);
    dcme_free(t);
}
