/* Classification: the exact gradient of the batch solver, with labels, soft targets and latent
 * classes.
 *
 * Compiled with DCME_REAL=double; see test_gradient_double.c, which does the same for word vectors.
 */
#include "class_setting.h"

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
    start(&s, &dcme_class_softmax);
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
    start(&s, &dcme_class_softmax);
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

int main(void) {
    for (int32_t threads = 1; threads < 5; threads++) {
        check_full_gradient(threads);
        check_soft_gradient(DCME_TARGETS, threads);
        check_soft_gradient(DCME_LATENT, threads);
    }
    return failures > 0;
}
