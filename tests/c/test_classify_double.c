/* Classification: every objective's step against central differences of its function.
 *
 * Compiled with DCME_REAL=double; see test_gradient_double.c, which does the same for word vectors.
 */
#include "classify/class_clusters.h"

#include "class_setting.h"

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

/* Four documents of 2, 2, 2 and 1 labels, which ascend. */
enum { HINGE_DOCUMENTS = 4 };
static const int64_t SETS[HINGE_DOCUMENTS + 1] = {0, 2, 4, 6, 7}, OWN[] = {0, 1, 2, 3};
static const int32_t SET_LABEL[] = {0, 2, 1, CLASSES - 1, 2, 3, 1};

/* -sum_j max(0, M - y_j s_j)^2 / 2 with y_j = 1 for the labels of a document */
static double hinge_value(setting *s) {
    double total = 0;
    for (int64_t d = 0; d < HINGE_DOCUMENTS; d++)
        for (int64_t j = 0; j < CLASSES; j++) {
            double score = BIAS * s->weights[FEATURES * STRIDE + j], sign = -1;
            for (int64_t i = STARTS[d]; i < STARTS[d + 1]; i++)
                score += VALUE[i] * s->weights[FEATURE[i] * STRIDE + j];
            for (int64_t i = SETS[d]; i < SETS[d + 1]; i++)
                sign = SET_LABEL[i] == j ? 1 : sign;
            double lack = 4 - sign * score;
            total += lack > 0 ? WEIGHT[d] * lack * lack / 2 : 0;
        }
    return -total;
}

/* A step of the hinge loss on documents with sets of labels. */
static void check_hinge(void) {
    const dcme_instances instances = {OWN, SET_LABEL, HINGE_DOCUMENTS, WEIGHT, SETS};
    const double rate = 1e-6;
    setting s;
    double direction[TABLE], wanted[TABLE], kept[TABLE];
    dcme_loss loss = {0, 0, 0};
    start(&s, &dcme_class_hinge);
    s.problem.instances = &instances;
    memcpy(kept, s.weights, sizeof kept);
    open_objective(&s);
    for (int64_t d = 0; d < HINGE_DOCUMENTS; d++)
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

/* u and the pending updates follow the weights: after some steps they give the products of the
 * folded weights. */
static void check_class_clusters_follow(void) {
    setting s;
    double before[2 * STRIDE], after[2 * STRIDE], bounds[STRIDE], wanted[3] = {0}, found[3];
    start(&s, &dcme_class_dcme);
    s.options.draws = 1;
    s.options.center_interval = 0.2; /* a new center at every other document or so */
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
    expect("clusters: u without pending sums", 0, found, wanted, clusters->count);
    expect("clusters: u after folding", 0, after, wanted, clusters->count);
    close_objective(&s);
    stop(&s);
}

int main(void) {
    check_step("softmax SGD", &dcme_class_softmax, 0, DOCUMENTS, 1, 0, log_likelihood);
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        check_step("ns", &dcme_class_sampling, d, d + 1, 1, 0, ascended);
        check_step("nce", &dcme_class_sampling, d, d + 1, 1, 0, ascended);
        check_step("dcme, no top clusters", &dcme_class_dcme, d, d + 1, 0, 0, ascended);
        check_step("dcme, one top cluster", &dcme_class_dcme, d, d + 1, 1, 0, ascended);
        check_step("dcme, one draw of two", &dcme_class_dcme, d, d + 1, 0, 1, ascended);
        check_step("dcme, all drawn", &dcme_class_dcme, d, d + 1, 0, 2, log_likelihood);
        check_step("dcme, all in the head", &dcme_class_dcme, d, d + 1, 9, 0, log_likelihood);
    }
    check_hinge();
    check_class_clusters_follow();
    return failures > 0;
}
