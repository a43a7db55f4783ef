/* Classification: the step of the paper's Algorithm 1, and its theorems on dual clusters.
 *
 * Compiled with DCME_REAL=double; see test_gradient_double.c, which does the same for word vectors.
 */
#include "classify/paper_clusters.h"

#include "class_setting.h"

/* Q_t of (8) for the one document of the setting, at the center in `alpha` */
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
    s->batch.count = 0;
    for (int64_t d = 0; d < DOCUMENTS; d++)
        dcme_batch_add_instance(&s->batch, &CORPUS, &INSTANCES, d);
}

/* Move cluster k's center to the mean of the documents that have `assigned` k. */
static void move(dcme_paper_clusters *paper, const setting *s, const int64_t *assigned, int64_t k) {
    double zeros[STRIDE] = {0}, scores[STRIDE], memory[2 * (FEATURES + 1)] = {0};
    dcme_paper_sums sums = {.sums = memory};
    for (int64_t d = 0; d < DOCUMENTS; d++)
        if (assigned[d] == k)
            dcme_paper_sums_add(&sums, &s->batch, d, 0);
    if (sums.count > 0) {
        dcme_paper_sums_apply(&sums, paper, zeros, scores);
        dcme_paper_clusters_move(paper, k, scores);
    }
}

/* Theorem 4.2's limit: a center for each instance makes Algorithm 1's step the step of exact
 * maximum entropy. */
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
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        check_paper(d, 0);
        check_paper(d, 4);
        check_limit(d);
    }
    check_alternation();
    return failures > 0;
}
