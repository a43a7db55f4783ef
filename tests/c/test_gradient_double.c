/* The steps of every objective against central differences of the function that it ascends.
 *
 * Compiled with DCME_REAL=double: differences are good to about ten digits. Random numbers do not
 * depend on the tables, so with the same stream a loss can be differentiated by the tables.
 */
#include "common/alias.h"
#include "objectives/proposal.h"
#include "train/internal.h"

#include "differences.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 11, DIM = 5, STRIDE = DCME_PAD, TABLE = ITEMS * STRIDE };
static const double TINY_RATE = 1e-8;
static const int64_t COUNTS[ITEMS] = {40, 31, 22, 15, 11, 9, 5, 4, 3, 2, 1};

/* An objective over a small model, and one context vector. */
typedef struct {
    dcme_model model;
    dcme_train_options options;
    const dcme_objective *objective;
    dcme_arena arena;
    void *shared, *thread;
    double input[TABLE], output[TABLE], h[STRIDE];
    double left[TABLE], right[TABLE]; /* with word order */
    int32_t target;
    double weights[ITEMS]; /* of a documented objective: see expected_noise() and surrogate() */
} setting;
typedef double function(setting *);

/* Random numbers in -1 .. 1, the padding left at zero. */
static void fill(double *rows, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count * STRIDE; i++)
        rows[i] = i % STRIDE < DIM ? (double)(dcme_random(&seed) >> 11) / (1ull << 52) - 1 : 0;
}

static dcme_train_options small_options(int32_t objective, int32_t dcme_update) {
    return (dcme_train_options){.objective = objective,
                                .dim = DIM,
                                .window = 2,
                                .negative = 6,
                                .noise_power = 0.75,
                                .prior = 0.5,
                                .clusters = 3,
                                .top_items = 3,
                                .beta = 0.01,
                                .dcme_update = dcme_update,
                                .epochs = 1,
                                .lr = TINY_RATE,
                                .input_rate = 1,
                                .block = 1,
                                .threads = 1};
}

static void start(setting *s, dcme_train_options options, int32_t target) {
    *s = (setting){.options = options, .target = target};
    fill(s->input, ITEMS, 1), fill(s->output, ITEMS, 2), fill(s->h, 1, 3);
    s->model = (dcme_model){.items = ITEMS,
                            .stride = STRIDE,
                            .size = STRIDE,
                            .input = s->input,
                            .output = s->output,
                            .counts = COUNTS,
                            .kernels = &dcme_kernels_scalar};
    s->objective = dcme_objective_choose(&s->options);
    s->shared = dcme_take(&s->arena, 1, s->objective->shared_size);
    s->objective->open(s->shared, &s->arena, &s->model, &s->options);
    s->thread = dcme_take(&s->arena, 1, s->objective->thread_size);
    if (s->arena.status == DCME_OK)
        s->objective->thread_open(s->thread, &s->arena, s->shared);
    if (s->arena.status != DCME_OK)
        abort();
}

static void stop(setting *s) { dcme_arena_close(&s->arena); }

/* One step, with the noise of a stream; returns its loss. */
static double step(setting *s, uint64_t stream, double rate, double *gradient) {
    dcme_loss loss = {0, 0, 0};
    dcme_instance instance = {s->target, rate, s->h, gradient};
    s->objective->seed(s->thread, stream);
    s->objective->prefetch(s->thread, s->target);
    s->objective->step(s->thread, &instance, &loss);
    return loss.sum;
}

static void differentiate(double *slope, double *x, int64_t count, function *f, setting *s) {
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i], above, below;
        x[i] = kept + EPSILON, above = f(s);
        x[i] = kept - EPSILON, below = f(s);
        x[i] = kept;
        slope[i] = (above - below) / (2 * EPSILON);
    }
}

/* (after - before) / rate, which is a row's direction */
static void moved(double *direction, const double *after, const double *before, double rate,
                  int64_t count) {
    for (int64_t i = 0; i < count; i++)
        direction[i] = (after[i] - before[i]) / rate;
}

/* A direction of x against the slope of f. */
static void compare(const char *what, int detail, const double *found, double *x, int64_t count,
                    function *f, setting *s) {
    double wanted[TABLE];
    differentiate(wanted, x, count, f, s);
    expect(what, detail, found, wanted, count);
}

/* The change of a table, which is undone, against the slope of f. */
static void compare_moved(const char *what, int detail, double *table, const double *before,
                          double rate, function *f, setting *s) {
    double direction[TABLE];
    moved(direction, table, before, rate, TABLE);
    memcpy(table, before, sizeof direction);
    compare(what, detail, direction, table, TABLE, f, s);
}

/* Negative sampling, NCE and hierarchical softmax ascend the negative of the loss that they report.
 */
static double ascended(setting *s) {
    double gradient[STRIDE];
    return -step(s, 17, 0, gradient);
}

static void check_noise(int32_t objective, int32_t target) {
    setting s;
    double gradient[STRIDE], before[TABLE];
    start(&s, small_options(objective, DCME_ROBUST), target);
    step(&s, 17, 0, gradient);
    compare("noise: direction of h", objective, gradient, s.h, STRIDE, ascended, &s);
    memcpy(before, s.output, sizeof before);
    step(&s, 17, 1, gradient);
    compare_moved("noise: output rows", objective, s.output, before, 1, ascended, &s);
    stop(&s);
}

/* the log prior: log of the normalized count^prior */
static double prior(const setting *s, int64_t j) {
    double total = 0;
    for (int64_t i = 0; i < ITEMS; i++)
        total += pow((double)COUNTS[i], s->options.prior);
    return log(pow((double)COUNTS[j], s->options.prior) / total);
}

static double score(const setting *s, int64_t j) {
    double sum = prior(s, j);
    for (int64_t d = 0; d < DIM; d++)
        sum += s->output[j * STRIDE + d] * s->h[d];
    return sum;
}

/* Q_t of (8) at the center in `weights` */
static double surrogate(setting *s) {
    double value = score(s, s->target);
    for (int64_t j = 0; j < ITEMS; j++)
        value -= s->weights[j] * score(s, j) - s->weights[j] * log(s->weights[j]);
    return value;
}

/* u = V alpha */
static void weighted_sum(double *u, const setting *s, const double *alpha) {
    memset(u, 0, STRIDE * sizeof *u);
    for (int64_t i = 0; i < TABLE; i++)
        u[i % STRIDE] += alpha[i / STRIDE] * s->output[i];
}

/* u = V alpha for the center of cluster z, and alpha = softmax(V h + prior) */
static void expect_settled(const setting *s, int64_t z) {
    const dcme_clusters *clusters = s->shared;
    double u[STRIDE], alpha[ITEMS], total = 0, entropy = 0;
    for (int64_t j = 0; j < ITEMS; j++)
        total += alpha[j] = exp(score(s, j));
    for (int64_t j = 0; j < ITEMS; j++) {
        alpha[j] /= total;
        entropy -= alpha[j] * (log(alpha[j]) - prior(s, j));
    }
    weighted_sum(u, s, alpha);
    expect("paper: center", (int)z, clusters->clusters[z].alpha, alpha, ITEMS);
    expect("paper: u", (int)z, clusters->u_rows[z], u, STRIDE);
    expect("paper: entropy", (int)z, &clusters->entropy[z], &entropy, 1);
}

/* With beta N below 1 every item gets its share of the gradient within the step. */
static void check_paper(int32_t top_items, int32_t target) {
    setting s;
    dcme_train_options options = small_options(DCME_DCME, DCME_PAPER);
    double gradient[STRIDE], before[TABLE], scores[8];
    options.top_items = top_items;
    start(&s, options, target);
    dcme_clusters *clusters = s.shared;
    int64_t z = dcme_clusters_decode(clusters, s.h, scores);
    memcpy(s.weights, clusters->clusters[z].alpha, sizeof s.weights);
    memcpy(before, s.output, sizeof before);
    double value = -surrogate(&s), loss = step(&s, 1, 0.7, gradient);
    expect("paper: loss", target, &loss, &value, 1);
    expect_settled(&s, z);
    compare_moved("paper: output rows", top_items, s.output, before, 0.7, surrogate, &s);
    compare("paper: direction of h", top_items, gradient, s.h, STRIDE, surrogate, &s);
    stop(&s);
}

/* Between offline updates u follows the rows that are updated online. */
static void check_paper_online(void) {
    setting s;
    dcme_train_options options = small_options(DCME_DCME, DCME_PAPER);
    double gradient[STRIDE], u[STRIDE], scores[8];
    options.beta = 100;
    start(&s, options, 0); /* item 0 is a top item of every cluster */
    dcme_clusters *clusters = s.shared;
    int64_t z = dcme_clusters_decode(clusters, s.h, scores);
    step(&s, 1, 0.7, gradient);
    weighted_sum(u, &s, clusters->clusters[z].alpha);
    expect("paper: u after a step online", 0, clusters->u_rows[z], u, STRIDE);
    stop(&s);
}

/* Of the robust form: NCE with nu samples of the noise in `weights`, in expectation, without those
 * of the target. */
static double expected_noise(setting *s) {
    double value = 0, nu = ((const dcme_proposals *)s->shared)->virtual_draws;
    for (int64_t j = 0; j < ITEMS; j++) {
        double x = score(s, j) - log(nu * s->weights[j]);
        value -= j == s->target ? log1p(exp(-x)) : nu * s->weights[j] * log1p(exp(x));
    }
    return value;
}

/* An objective after some steps: centers differ from the unigram. */
static const dcme_cluster *start_robust(setting *s, dcme_train_options options, int32_t target) {
    double gradient[STRIDE], scores[8];
    start(s, options, target);
    for (uint64_t i = 0; i < 6; i++) {
        fill(s->h, 1, 30 + i);
        s->target = (int32_t)(2 * i % ITEMS);
        step(s, 40 + i, 0.3, gradient);
    }
    fill(s->h, 1, 3);
    s->target = target;
    const dcme_proposals *proposals = s->shared; /* the first shared member */
    const dcme_clusters *clusters = &proposals->clusters;
    int64_t z = dcme_clusters_decode(clusters, s->h, scores);
    for (int64_t j = 0; j < ITEMS; j++)
        s->weights[j] = dcme_proposal_of(proposals, z, j);
    return &clusters->clusters[z];
}

/* The noise sample of a step with this stream: its noise is `q` outside the top items. */
static int32_t drawn(const dcme_cluster *cluster, const double *q, uint64_t stream) {
    dcme_alias cells[ITEMS];
    double weights[ITEMS];
    int32_t order[ITEMS];
    for (int64_t j = 0; j < ITEMS; j++)
        weights[j] = cluster->is_top[j] ? 0 : q[j];
    if (!dcme_alias_build(cells, weights, order, ITEMS))
        abort();
    return dcme_alias_draw(cells, ITEMS, &stream);
}

/* Add the change of h and the rows by a step, times `share`; starts from the same state. */
static void add_step(dcme_train_options options, int32_t target, uint64_t stream, double share,
                     double *gradient, double *rows) {
    setting s;
    double one[STRIDE], before[TABLE], direction[TABLE];
    start_robust(&s, options, target);
    memcpy(before, s.output, sizeof before);
    step(&s, stream, TINY_RATE, one);
    moved(direction, s.output, before, TINY_RATE, TABLE);
    for (int64_t d = 0; d < STRIDE; d++)
        gradient[d] += share * one[d];
    for (int64_t i = 0; i < TABLE; i++)
        rows[i] += share * direction[i];
    stop(&s);
}

/* The expected step over all noise samples is the gradient. */
static void check_robust(int32_t top_items, int32_t target) {
    setting s;
    dcme_train_options options = small_options(DCME_DCME, DCME_ROBUST);
    double gradient[STRIDE] = {0}, rows[TABLE] = {0}, mass = 0;
    int seen[ITEMS] = {0}, missing = 0;
    options.top_items = top_items;
    if (top_items < ITEMS)
        options.negative = 1, options.clusters = 1;
    const dcme_cluster *cluster = start_robust(&s, options, target);
    for (int64_t j = 0; j < ITEMS; j++)
        if (!cluster->is_top[j])
            mass += s.weights[j], missing++;
    if (missing == 0) /* if all items are top items, nothing is drawn */
        add_step(options, target, 1, 1, gradient, rows);
    for (uint64_t stream = 1; missing > 0 && stream < 100000; stream++) {
        int32_t word = drawn(cluster, s.weights, stream);
        if (seen[word]++)
            continue;
        add_step(options, target, stream, s.weights[word] / mass, gradient, rows);
        missing--;
    }
    compare("robust: mean direction of h", top_items, gradient, s.h, STRIDE, expected_noise, &s);
    compare("robust: mean step of rows", top_items, rows, s.output, TABLE, expected_noise, &s);
    stop(&s);
}

/* A block of targets, one of them twice, that share samples. */
enum { TARGETS = 5 };
static const int32_t BLOCK[TARGETS] = {0, 3, 0, 10, 1};
static double contexts[TARGETS * STRIDE];

/* A step of all; only the loss of target `sampled` is returned. */
static double step_block(setting *s, double rate, double *gradients, int64_t sampled) {
    dcme_loss loss = {0, 0, (DCME_BLOCK_LOSS_EVERY - sampled) % DCME_BLOCK_LOSS_EVERY};
    dcme_instance instances[TARGETS];
    s->objective->seed(s->thread, 17);
    for (int64_t t = 0; t < TARGETS; t++) {
        instances[t] =
            (dcme_instance){BLOCK[t], rate, contexts + t * STRIDE, gradients + t * STRIDE};
        s->objective->prefetch(s->thread, BLOCK[t]);
    }
    s->objective->step_block(s->thread, instances, TARGETS, &loss);
    return loss.sum;
}

static double block_ascended(setting *s) {
    double gradients[TARGETS * STRIDE], sum = 0;
    for (int64_t t = 0; t < TARGETS; t++)
        sum -= step_block(s, 0, gradients, t);
    return sum;
}

/* Steps are implicit, so that the rate is tiny. */
static void check_block(int32_t objective, int32_t negative) {
    setting s;
    dcme_train_options options = small_options(objective, DCME_ROBUST);
    double gradients[TARGETS * STRIDE], before[TABLE];
    options.block = DCME_BLOCK_MAX, options.negative = negative;
    start(&s, options, 0);
    fill(contexts, TARGETS, 9);
    step_block(&s, 0, gradients, 0);
    compare("block: directions of h", objective, gradients, contexts, TARGETS * STRIDE,
            block_ascended, &s);
    memcpy(before, s.output, sizeof before);
    step_block(&s, TINY_RATE, gradients, 0);
    compare_moved("block: output rows", objective, s.output, before, TINY_RATE, block_ascended, &s);
    stop(&s);
}

enum { WORDS = 11 };
static const uint32_t TEXT[WORDS] = {
    0, 1, 2, 1, 3, 4, 8 | DCME_SENTENCE_END, 5, 0, 7, 2 | DCME_SENTENCE_END};

/* The objective under test, with summed losses; `times` is the weight of a target's loss. */
static struct {
    const dcme_objective *real;
    double sum, weighted;
    const double *times;
} recorder;

static void recorded_step(void *thread, const dcme_instance *instance, dcme_loss *loss) {
    dcme_loss one = {0, 0, 0};
    recorder.real->step(thread, instance, &one);
    double weight = instance->rate / TINY_RATE; /* below 1 for the distant pairs of skip-gram */
    recorder.sum += weight * one.sum;
    recorder.weighted += weight * one.sum * (recorder.times ? recorder.times[loss->seen++] : 1);
}

/* Train on the text: the tables change, the recorder has the losses. */
static void train(setting *s) {
    dcme_trainer *trainer;
    dcme_corpus corpus = {TEXT, WORDS, COUNTS, ITEMS, NULL};
    real *neighbors[2] = {s->left, s->right};
    if (dcme_trainer_open(&trainer, &s->options, &corpus, s->input, s->output, neighbors, NULL,
                          NULL))
        abort();
    dcme_objective recorded = *trainer->objective;
    recorder.real = trainer->objective;
    recorder.sum = recorder.weighted = 0;
    recorded.step = recorded_step;
    trainer->objective = &recorded;
    if (dcme_engine_epoch(dcme_trainer_engine(trainer), 0, NULL))
        abort();
    dcme_trainer_close(trainer);
}

static double likelihood(setting *s) {
    setting copy = *s;
    train(&copy);
    return -recorder.sum;
}

static double weighted_likelihood(setting *s) {
    likelihood(s);
    return -recorder.weighted;
}

/* word2vec's gradient is the gradient of losses times the context's size: `times`, NULL for the
 * exact one */
static void check_text(int32_t objective, int32_t model, int32_t window_mode, int32_t window,
                       const double *times) {
    setting s = {.options = small_options(objective, DCME_ROBUST)}, after;
    int detail = 100 * objective + 10 * model + window_mode;
    s.options.model = model, s.options.window_mode = window_mode, s.options.window = window;
    s.options.gradient = times ? DCME_WORD2VEC : DCME_EXACT;
    recorder.times = times;
    fill(s.input, ITEMS, 5), fill(s.output, ITEMS, 6);
    after = s;
    train(&after);
    compare_moved("text: input rows", detail, after.input, s.input, TINY_RATE, weighted_likelihood,
                  &after);
    compare_moved("text: output rows", detail, after.output, s.output, TINY_RATE, likelihood,
                  &after);
}

/* Own rows of neighbors: in every score, and updated at four times the rate. */
static void check_word_order(int32_t objective, int32_t window_mode) {
    setting s = {.options = small_options(objective, DCME_ROBUST)}, after;
    int detail = 10 * objective + window_mode;
    s.options.window_mode = window_mode, s.options.window = 3, s.options.word_order = 1;
    recorder.times = NULL;
    fill(s.input, ITEMS, 5), fill(s.output, ITEMS, 6);
    fill(s.left, ITEMS, 7), fill(s.right, ITEMS, 8);
    after = s;
    train(&after);
    compare_moved("text: rows of left neighbors", detail, after.left, s.left, 4 * TINY_RATE,
                  likelihood, &after);
    compare_moved("text: rows of right neighbors", detail, after.right, s.right, 4 * TINY_RATE,
                  likelihood, &after);
    compare_moved("text: input rows, word order", detail, after.input, s.input, TINY_RATE,
                  likelihood, &after);
}

static void check_texts(int32_t objective) {
    static const double nearest[WORDS] = {1, 2, 2, 2, 2, 2, 1, 1, 2, 2, 1};
    static const double two[WORDS] = {2, 3, 4, 4, 4, 3, 2, 2, 3, 3, 2};
    for (int32_t mode = DCME_SHRINK; mode <= DCME_FIXED; mode++) {
        check_text(objective, DCME_CBOW, mode, 2, NULL);
        check_text(objective, DCME_CBOW, mode, 9, NULL);
        check_text(objective, DCME_SKIPGRAM, mode, 3, NULL);
    }
    for (int32_t mode = DCME_SHRINK; mode <= DCME_FIXED; mode++)
        check_word_order(objective, mode);
    check_text(objective, DCME_CBOW, DCME_SHRINK, 1, nearest);
    check_text(objective, DCME_CBOW, DCME_FIXED, 2, two);
}

int main(void) {
    for (int32_t target = 0; target < ITEMS; target += 5) {
        check_noise(DCME_NS, target);
        check_noise(DCME_NCE, target);
        check_noise(DCME_HS, target);
        for (int32_t top_items = 0; top_items <= ITEMS + 1; top_items += 3)
            check_paper(top_items, target);
        for (int32_t top_items = 0; top_items < 2 * ITEMS; top_items += 2)
            check_robust(top_items, target);
    }
    for (int32_t objective = DCME_NS; objective <= DCME_DCME; objective++)
        check_block(objective, 6), check_block(objective, 25);
    check_paper_online();
    check_texts(DCME_NS);
    check_texts(DCME_NCE);
    return failures > 0;
}
