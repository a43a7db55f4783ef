/* Classification: every objective's step against central differences of its function, the exact
 * gradient of the batch solver, and the paper's theorems on dual clusters.
 *
 * Compiled with DCME_REAL=double; see test_gradient_double.c, which does the same for word vectors.
 */
#include "classify/class_clusters.h"
#include "classify/paper_clusters.h"
#include "common/random.h"

#include "differences.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Three lines of classes, the last one not full. */
enum {
    CLASSES = 37,
    STRIDE = 48,
    FEATURES = 6,
    TABLE = (FEATURES + 1) * STRIDE,
    DOCUMENTS = 7,
    OUTPUTS = 40
};
static const double BIAS = 0.5;
static const int64_t STARTS[DOCUMENTS + 1] = {0, 3, 4, 4, 7, 9, 12, 14};
static const int32_t FEATURE[] = {0, 2, 5, 1, 1, 3, 4, 0, 5, 2, 3, 4, 1, 2};
static const double VALUE[] = {1, -2, .5, 2, .7, 1, -1, .3, 1.5, 2, -.4, .6, 1, 1};
static const int64_t DOCUMENT[DOCUMENTS] = {0, 1, 2, 3, 4, 5, 6};
static const int32_t LABEL[DOCUMENTS] = {3, 17, 36, 0, 17, 30, 8};
static const dcme_sparse_rows CORPUS = {STARTS, FEATURE, VALUE, DOCUMENTS};
static const double WEIGHT[DOCUMENTS] = {1, 2, .5, 3, 1, .25, 1.5};
static const dcme_instances INSTANCES = {DOCUMENT, LABEL, DOCUMENTS, WEIGHT};

typedef struct {
    double weights[TABLE];
    int64_t counts[CLASSES];
    dcme_linear model;
    dcme_classify_options options;
    double outputs[OUTPUTS * STRIDE]; /* of low rank: 37 columns are the hidden layer */
    dcme_output output;
    dcme_problem problem;
    dcme_batch batch;
    const dcme_class_objective *objective;
    void *shared, *thread;
    double alpha[CLASSES]; /* of surrogate() */
    int64_t first, last;   /* documents of a step */
} setting;
typedef double function(setting *);

static void start(setting *s, const dcme_class_objective *objective) {
    uint64_t stream = 5;
    s->objective = objective;
    s->options = (dcme_classify_options){.negative = 4,
                                         .noise_power = 0.75,
                                         .class_clusters = 3,
                                         .exact_clusters = 1,
                                         .centre_interval = 100,
                                         .clusters = 3,
                                         .top_items = 1,
                                         .beta = 100,
                                         .batch = DOCUMENTS,
                                         .epochs = 1,
                                         .threads = 1};
    for (int64_t j = 0; j < CLASSES; j++)
        s->counts[j] = 1 + j % 5;
    for (int64_t i = 0; i < TABLE; i++) {
        double number = (double)(dcme_random(&stream) >> 11) / (1ull << 52) - 1;
        s->weights[i] = i % STRIDE < CLASSES ? number : 0;
    }
    s->model = (dcme_linear){CLASSES, STRIDE, FEATURES, BIAS, s->weights, &dcme_kernels_scalar};
    for (int64_t i = 0; i < OUTPUTS * STRIDE; i++)
        s->outputs[i] =
            i % STRIDE < CLASSES ? (double)(dcme_random(&stream) >> 11) / (1ull << 53) - .5 : 0;
    s->output = (dcme_output){OUTPUTS, s->outputs};
    s->problem = (dcme_problem){&s->model, &INSTANCES, &s->options,
                                s->counts, &s->output, dcme_widest(&CORPUS)};
    s->batch = (dcme_batch){0};
    s->first = 0, s->last = DOCUMENTS;
    if (dcme_batch_open(&s->batch, &s->model, DOCUMENTS, dcme_widest(&CORPUS)) != DCME_OK)
        abort();
}

static void stop(setting *s) { dcme_batch_close(&s->batch); }

static void open_objective(setting *s) {
    if (s->objective->open(&s->shared, &s->problem, NULL) != DCME_OK ||
        s->objective->thread_open(&s->thread, s->shared, NULL) != DCME_OK)
        abort();
}

static void close_objective(setting *s) {
    s->objective->thread_close(s->thread);
    s->objective->close(s->shared);
}

/* One step on the setting's documents; returns the loss of the sampled ones. */
static double step(setting *s, double rate) {
    dcme_loss loss = {0, 0, 0};
    dcme_batch_clear(&s->batch);
    for (int64_t d = s->first; d < s->last; d++)
        dcme_batch_add_instance(&s->batch, &CORPUS, &INSTANCES, d);
    s->objective->seed(s->thread, 17);
    s->objective->step(s->thread, &s->batch, rate, &loss);
    if (s->objective->fold)
        s->objective->fold(s->shared);
    return loss.sum;
}

/* The function that an objective ascends, at the present weights. */
static double ascended(setting *s) {
    double kept[TABLE];
    memcpy(kept, s->weights, sizeof kept);
    open_objective(s);
    double loss = step(s, 0);
    close_objective(s);
    memcpy(s->weights, kept, sizeof kept);
    return -loss;
}

static void differentiate(double *slope, function *f, setting *s) {
    for (int64_t i = 0; i < TABLE; i++) {
        double kept = s->weights[i], above, below;
        slope[i] = 0;
        if (i % STRIDE >= CLASSES)
            continue;
        s->weights[i] = kept + EPSILON, above = f(s);
        s->weights[i] = kept - EPSILON, below = f(s);
        s->weights[i] = kept;
        slope[i] = (above - below) / (2 * EPSILON);
    }
}

/* (W after a step - W) / rate */
static void direction_of(setting *s, double *direction) {
    const double rate = 0.25;
    double before[TABLE];
    memcpy(before, s->weights, sizeof before);
    open_objective(s);
    step(s, rate);
    close_objective(s);
    for (int64_t i = 0; i < TABLE; i++)
        direction[i] = (s->weights[i] - before[i]) / rate;
    memcpy(s->weights, before, sizeof before);
}

static double log_likelihood(setting *s) {
    double sum = 0, scores[DOCUMENTS * STRIDE];
    if (dcme_classify_scores(scores, &s->model, &CORPUS, 0, DOCUMENTS, 2, NULL) != DCME_OK)
        abort();
    for (int64_t d = s->first; d < s->last; d++) {
        double score = scores[d * STRIDE + LABEL[d]];
        sum += WEIGHT[d] * (score - dcme_softmax(scores + d * STRIDE, &s->model));
    }
    return sum;
}

/* log p of one document's label with s_j = f_j . W^T x, by plain loops */
static double one_likelihood(setting *s, int64_t d) {
    double hidden[DOCUMENTS * STRIDE], scores[OUTPUTS] = {0}, total = 0;
    if (dcme_classify_scores(hidden, &s->model, &CORPUS, 0, DOCUMENTS, 1, NULL) != DCME_OK)
        abort();
    for (int64_t j = 0; j < OUTPUTS; j++) {
        for (int64_t k = 0; k < CLASSES; k++)
            scores[j] += s->outputs[j * STRIDE + k] * hidden[d * STRIDE + k];
        total += exp(scores[j]);
    }
    return WEIGHT[d] * (scores[LABEL[d]] - log(total));
}

static void differentiate_one(double *slope, double *numbers, int64_t count, setting *s,
                              int64_t d) {
    for (int64_t i = 0; i < count; i++) {
        double kept = numbers[i], above, below;
        slope[i] = 0;
        if (i % STRIDE >= CLASSES)
            continue;
        numbers[i] = kept + EPSILON, above = one_likelihood(s, d);
        numbers[i] = kept - EPSILON, below = one_likelihood(s, d);
        numbers[i] = kept;
        slope[i] = (above - below) / (2 * EPSILON);
    }
}

/* The step of one document by both factors; several documents update f_j one by one. */
static void check_low_rank(int64_t document) {
    setting s;
    const double rate = 1e-6;
    double direction[TABLE], wanted[TABLE], before[OUTPUTS * STRIDE], found[OUTPUTS * STRIDE];
    double slope[OUTPUTS * STRIDE], loss, value;
    start(&s, &dcme_class_low_rank);
    s.first = document, s.last = document + 1;
    memcpy(before, s.outputs, sizeof before);
    double kept[TABLE];
    memcpy(kept, s.weights, sizeof kept);
    open_objective(&s);
    loss = step(&s, rate);
    close_objective(&s);
    for (int64_t i = 0; i < TABLE; i++)
        direction[i] = (s.weights[i] - kept[i]) / rate;
    for (int64_t i = 0; i < OUTPUTS * STRIDE; i++)
        found[i] = (s.outputs[i] - before[i]) / rate;
    memcpy(s.weights, kept, sizeof kept), memcpy(s.outputs, before, sizeof before);
    value = -one_likelihood(&s, document);
    expect("low rank: loss", (int)document, &loss, &value, 1);
    differentiate_one(wanted, s.weights, TABLE, &s, document);
    differentiate_one(slope, s.outputs, OUTPUTS * STRIDE, &s, document);
    expect("low rank: first factor", (int)document, direction, wanted, TABLE);
    expect("low rank: second factor", (int)document, found, slope, OUTPUTS * STRIDE);
    stop(&s);
}

static void check_step(const char *what, const dcme_class_objective *objective, int64_t first,
                       int64_t last, int32_t exact, int32_t draws, function *f) {
    setting s;
    double direction[TABLE], wanted[TABLE];
    start(&s, objective);
    s.first = first, s.last = last;
    s.options.exact_clusters = exact, s.options.draws = draws;
    direction_of(&s, direction);
    differentiate(wanted, f, &s);
    expect(what, (int)first, direction, wanted, TABLE);
    stop(&s);
}

/* -sum_j max(0, M - y_j s_j)^2 / 2; an instance has no term for its document's other label */
static double hinge_value(setting *s) {
    double total = 0;
    for (int64_t d = 0; d < DOCUMENTS; d++)
        for (int64_t j = 0; j < CLASSES; j++) {
            int64_t other = d ^ 1; /* instances 2k and 2k + 1 are labels of one document */
            double score = BIAS * s->weights[FEATURES * STRIDE + j];
            for (int64_t i = STARTS[d / 2]; i < STARTS[d / 2 + 1]; i++)
                score += VALUE[i] * s->weights[FEATURE[i] * STRIDE + j];
            double lack = j == LABEL[d] ? 4 - score : 4 + score;
            if (lack > 0 && !(other < DOCUMENTS && j == LABEL[other]))
                total += WEIGHT[d] * lack * lack / 2;
        }
    return -total;
}

/* A step of the hinge loss, where two documents have two labels each, and one has one. */
static void check_hinge(void) {
    static const int64_t shared[DOCUMENTS] = {0, 0, 1, 1, 2, 2, 3};
    const dcme_instances instances = {shared, LABEL, DOCUMENTS, WEIGHT};
    const double rate = 1e-6;
    setting s;
    double direction[TABLE], wanted[TABLE], kept[TABLE];
    dcme_loss loss = {0, 0, 0};
    start(&s, &dcme_class_softmax_sgd);
    s.options.loss = DCME_CLASSIFY_HINGE;
    s.problem.instances = &instances;
    memcpy(kept, s.weights, sizeof kept);
    open_objective(&s);
    for (int64_t d = 0; d < DOCUMENTS; d++)
        dcme_batch_add_instance(&s.batch, &CORPUS, &instances, d);
    s.objective->step(s.thread, &s.batch, rate, &loss);
    close_objective(&s);
    for (int64_t i = 0; i < TABLE; i++)
        direction[i] = (s.weights[i] - kept[i]) / rate;
    memcpy(s.weights, kept, sizeof kept);
    double value = -hinge_value(&s) / 16;
    expect("hinge: loss", 0, &loss.sum, &value, 1);
    differentiate(wanted, hinge_value, &s);
    expect("hinge: step", 0, direction, wanted, TABLE);
    stop(&s);
}

/* The loss and its gradient, NULL where it is not wanted, of all instances. */
static double exact(const setting *s, double *gradient, const dcme_soft_targets *soft,
                    int32_t threads) {
    double loss;
    dcme_by_feature *columns = NULL;
    if (gradient && dcme_by_feature_open(&columns, &CORPUS, &INSTANCES, FEATURES, NULL) != DCME_OK)
        abort();
    dcme_exact_problem problem = {&CORPUS, &INSTANCES, columns, soft};
    if (dcme_classify_gradient(&loss, gradient, &s->model, &problem, threads, NULL) != DCME_OK)
        abort();
    dcme_by_feature_close(columns);
    return loss;
}

static void check_full_gradient(int32_t threads) {
    setting s;
    double gradient[(FEATURES + 1) * CLASSES], found[TABLE] = {0}, wanted[TABLE], loss;
    start(&s, &dcme_class_softmax_sgd);
    loss = exact(&s, gradient, NULL, threads);
    for (int64_t i = 0; i < (FEATURES + 1) * CLASSES; i++)
        found[i / CLASSES * STRIDE + i % CLASSES] = -gradient[i];
    double value = -log_likelihood(&s);
    expect("full gradient: loss", threads, &loss, &value, 1);
    differentiate(wanted, log_likelihood, &s);
    expect("full gradient", threads, found, wanted, TABLE);
    stop(&s);
}

/* Rows of targets, or of log p(label | class), by label; the padding is not read. */
static void make_soft_rows(double *rows, int32_t kind) {
    uint64_t stream = 11;
    for (int64_t i = 0; i < CLASSES * STRIDE; i++) {
        double number = (double)(dcme_random(&stream) >> 11) / (1ull << 53) + 1e-3;
        rows[i] = kind == DCME_TARGETS ? number / 19 : log(number);
    }
}

/* The loss by definition: -sum_k t_k log p_k, or -log sum_k p_k alpha_k,y. */
static double soft_loss(setting *s, int32_t kind, const double *rows) {
    double sum = 0, scores[DOCUMENTS * STRIDE];
    if (dcme_classify_scores(scores, &s->model, &CORPUS, 0, DOCUMENTS, 1, NULL) != DCME_OK)
        abort();
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        const double *row = rows + LABEL[d] * STRIDE;
        double *p = scores + d * STRIDE, inner = 0;
        dcme_softmax(p, &s->model);
        for (int64_t k = 0; k < CLASSES; k++)
            inner += kind == DCME_TARGETS ? row[k] * log(p[k]) : p[k] * exp(row[k]);
        sum -= WEIGHT[d] * (kind == DCME_TARGETS ? inner : log(inner));
    }
    return sum;
}

static double soft_rows[2][CLASSES * STRIDE];
static double targets_loss(setting *s) { return soft_loss(s, DCME_TARGETS, soft_rows[0]); }
static double latent_loss(setting *s) { return soft_loss(s, DCME_LATENT, soft_rows[1]); }

/* xi_k = p_k alpha_k,y / sum, by a plain loop */
static void check_posterior(setting *s, const double *posterior) {
    double scores[DOCUMENTS * STRIDE], wanted[DOCUMENTS * CLASSES], found[DOCUMENTS * CLASSES];
    if (dcme_classify_scores(scores, &s->model, &CORPUS, 0, DOCUMENTS, 1, NULL) != DCME_OK)
        abort();
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        double total = 0;
        dcme_softmax(scores + d * STRIDE, &s->model);
        for (int64_t k = 0; k < CLASSES; k++)
            total += scores[d * STRIDE + k] * exp(soft_rows[1][LABEL[d] * STRIDE + k]);
        for (int64_t k = 0; k < CLASSES; k++) {
            int64_t i = d * CLASSES + k;
            wanted[i] = scores[d * STRIDE + k] * exp(soft_rows[1][LABEL[d] * STRIDE + k]) / total;
            found[i] = posterior[d * STRIDE + k];
        }
    }
    expect("soft: posterior", 0, found, wanted, DOCUMENTS * CLASSES);
}

static void check_soft_gradient(int32_t kind, int32_t threads) {
    setting s;
    double gradient[(FEATURES + 1) * CLASSES], found[TABLE] = {0}, wanted[TABLE], loss, again;
    double posterior[DOCUMENTS * STRIDE];
    dcme_soft_targets soft = {kind, soft_rows[kind], kind == DCME_LATENT ? posterior : NULL};
    function *f = kind == DCME_TARGETS ? targets_loss : latent_loss;
    start(&s, &dcme_class_softmax_sgd);
    make_soft_rows(soft_rows[kind], kind);
    loss = exact(&s, gradient, &soft, threads);
    if (kind == DCME_LATENT)
        check_posterior(&s, posterior);
    soft.posterior = NULL;
    again = exact(&s, NULL, &soft, threads);
    for (int64_t i = 0; i < (FEATURES + 1) * CLASSES; i++)
        found[i / CLASSES * STRIDE + i % CLASSES] = gradient[i];
    double value = f(&s);
    expect("soft: loss", threads, &loss, &value, 1);
    expect("soft: loss alone", threads, &again, &value, 1);
    differentiate(wanted, f, &s);
    expect("soft: gradient", threads, found, wanted, TABLE);
    stop(&s);
}

/* u and the pending updates follow the weights: after some steps they give the products of the
 * folded weights. */
static void check_class_clusters_follow(void) {
    setting s;
    double before[2 * STRIDE], after[2 * STRIDE], bounds[STRIDE], wanted[3] = {0}, found[3];
    start(&s, &dcme_class_dcme);
    s.options.draws = 1;
    s.options.centre_interval = 0.2; /* a new centre at every other document or so */
    open_objective(&s);
    dcme_class_clusters *clusters = s.shared;
    dcme_class_objective one = *s.objective;
    one.fold = NULL;
    s.objective = &one;
    step(&s, 0.3);
    dcme_class_clusters_bounds(clusters, &s.batch, 0, before, bounds);
    for (int64_t k = 0; k < clusters->count; k++)
        found[k] = bounds[k] - clusters->entropy[k];
    dcme_class_clusters_fold(clusters);
    dcme_class_clusters_bounds(clusters, &s.batch, 0, after, bounds);
    for (int64_t f = 0; f < 4; f++) /* document 0 has three features and the bias */
        for (int64_t j = 0; j < CLASSES; j++)
            wanted[j / clusters->width] += s.batch.values[f] * clusters->alpha[j] *
                                           s.weights[s.batch.features[f] * STRIDE + j];
    expect("clusters: u less what is pending", 0, found, wanted, clusters->count);
    expect("clusters: u after folding", 0, after, wanted, clusters->count);
    close_objective(&s);
    stop(&s);
}

/* Q_t of (8) for the one document of the setting, at the centre in `alpha` */
static double surrogate(setting *s) {
    double value = 0, scores[DOCUMENTS * STRIDE];
    if (dcme_classify_scores(scores, &s->model, &CORPUS, 0, DOCUMENTS, 1, NULL) != DCME_OK)
        abort();
    const double *score = scores + s->first * STRIDE;
    for (int64_t j = 0; j < CLASSES; j++)
        if (s->alpha[j] > 0)
            value -= s->alpha[j] * score[j] - s->alpha[j] * log(s->alpha[j]);
    return WEIGHT[s->first] * (value + score[LABEL[s->first]]);
}

static int64_t decode(const dcme_paper_clusters *paper, dcme_batch *batch, int64_t d) {
    double values[DCME_PAD];
    dcme_paper_clusters_bounds(paper, batch, d, values);
    return dcme_cluster_best(paper->clusters, values, paper->count);
}

/* Algorithm 1: with beta C below 1 every class gets its share of the gradient within the step. */
static void check_paper(int64_t document, int32_t top_items) {
    setting s;
    double direction[TABLE], wanted[TABLE];
    start(&s, &dcme_class_dcme_paper);
    s.first = document, s.last = document + 1;
    s.options.beta = 0.01, s.options.top_items = top_items;
    open_objective(&s);
    dcme_batch_add_instance(&s.batch, &CORPUS, &INSTANCES, document);
    const dcme_paper_clusters *paper = s.shared;
    memcpy(s.alpha, paper->clusters[decode(paper, &s.batch, 0)].alpha, sizeof s.alpha);
    close_objective(&s);
    double value = surrogate(&s), loss = -ascended(&s);
    expect("paper: loss", (int)document, &loss, (double[]){-value}, 1);
    direction_of(&s, direction);
    differentiate(wanted, surrogate, &s);
    expect("paper: direction", top_items, direction, wanted, TABLE);
    stop(&s);
}

static void load_all(setting *s) {
    dcme_batch_clear(&s->batch);
    for (int64_t d = 0; d < DOCUMENTS; d++)
        dcme_batch_add_instance(&s->batch, &CORPUS, &INSTANCES, d);
}

/* Move cluster k's centre to the mean of the documents that have `assigned` k. */
static void move(dcme_paper_clusters *paper, const setting *s, const int64_t *assigned, int64_t k) {
    dcme_paper_sums *sums;
    double zeros[STRIDE] = {0}, scores[STRIDE];
    if (dcme_paper_sums_open(&sums, 1, paper->features) != DCME_OK)
        abort();
    for (int64_t d = 0; d < DOCUMENTS; d++)
        if (assigned[d] == k)
            dcme_paper_sums_add(sums, &s->batch, d, 0);
    if (sums->count > 0) {
        dcme_paper_sums_apply(sums, paper, zeros, scores);
        dcme_paper_clusters_move(paper, k, scores);
    }
    dcme_paper_sums_close(sums, 1);
}

/* Theorem 4.2's limit: a centre for each instance makes Algorithm 1's step that of exact maximum
 * entropy. */
static void check_limit(int64_t document) {
    setting s;
    double before[TABLE], direction[TABLE], wanted[TABLE];
    start(&s, &dcme_class_dcme_paper);
    s.options.clusters = DOCUMENTS, s.options.beta = 0.01;
    open_objective(&s);
    load_all(&s);
    for (int64_t d = 0; d < DOCUMENTS; d++)
        move(s.shared, &s, DOCUMENT, d);
    s.first = document, s.last = document + 1;
    memcpy(before, s.weights, sizeof before);
    step(&s, 1);
    for (int64_t i = 0; i < TABLE; i++)
        direction[i] = s.weights[i] - before[i];
    memcpy(s.weights, before, sizeof before);
    differentiate(wanted, log_likelihood, &s);
    expect("limit: exact maximum entropy", (int)document, direction, wanted, TABLE);
    close_objective(&s);
    stop(&s);
}

/* sum over t of KL(alpha_{c_t} || P_t), (19): the gap between (8) and the likelihood */
static double divergence(setting *s, const int64_t *assigned) {
    double sum = 0;
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        s->first = d, s->last = d + 1;
        memcpy(s->alpha, ((dcme_paper_clusters *)s->shared)->clusters[assigned[d]].alpha,
               sizeof s->alpha);
        sum += surrogate(s) - log_likelihood(s);
    }
    return sum;
}

/* Theorem 4.1: neither of the two alternating steps raises (19). */
static void check_alternation(void) {
    setting s;
    int64_t assigned[DOCUMENTS] = {0};
    start(&s, &dcme_class_dcme_paper);
    open_objective(&s);
    load_all(&s);
    double first = divergence(&s, assigned), last = first;
    for (int round = 0; round < 8; round++) {
        for (int64_t k = 0; k < s.options.clusters && round % 2; k++)
            move(s.shared, &s, assigned, k);
        for (int64_t d = 0; d < DOCUMENTS && round % 2 == 0; d++)
            assigned[d] = decode(s.shared, &s.batch, d);
        double now = divergence(&s, assigned);
        if (!(now >= 0 && now <= last + 1e-12)) {
            printf("alternation, round %d: %g after %g\n", round, now, last);
            failures++;
        }
        last = now;
    }
    if (!(last < 0.9 * first)) {
        printf("alternation: %g at the end, %g at first\n", last, first);
        failures++;
    }
    close_objective(&s);
    stop(&s);
}

int main(void) {
    check_step("softmax SGD", &dcme_class_softmax_sgd, 0, DOCUMENTS, 1, 0, log_likelihood);
    for (int32_t threads = 1; threads < 5; threads++)
        check_full_gradient(threads), check_soft_gradient(DCME_TARGETS, threads),
            check_soft_gradient(DCME_LATENT, threads);
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        check_step("ns", &dcme_class_ns, d, d + 1, 1, 0, ascended);
        check_step("nce", &dcme_class_nce, d, d + 1, 1, 0, ascended);
        check_step("dcme, no top clusters", &dcme_class_dcme, d, d + 1, 0, 0, ascended);
        check_step("dcme, one top cluster", &dcme_class_dcme, d, d + 1, 1, 0, ascended);
        check_step("dcme, one draw of two", &dcme_class_dcme, d, d + 1, 0, 1, ascended);
        check_step("dcme, all drawn", &dcme_class_dcme, d, d + 1, 0, 2, log_likelihood);
        check_step("dcme, all in the head", &dcme_class_dcme, d, d + 1, 9, 0, log_likelihood);
        check_paper(d, 0);
        check_paper(d, 4);
        check_limit(d);
        check_low_rank(d);
    }
    check_hinge();
    check_class_clusters_follow();
    check_alternation();
    return failures > 0;
}
