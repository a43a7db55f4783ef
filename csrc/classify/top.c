/* The most probable classes of a document. */
#include "classify/classify.h"
#include "common/top_k.h"

void dcme_most_probable(int32_t *best, double *log_p, int64_t count, const real *scores,
                        int64_t classes, double *row, const dcme_kernels *kernels) {
    if (count == 0)
        return;
    for (int64_t j = 0; j < classes; j++)
        row[j] = scores[j];
    double total = kernels->log_sum_exp(row, classes);
    dcme_top_k(best, count, scores, classes);
    for (int64_t i = 0; i < count; i++)
        log_p[i] = row[best[i]] - total;
}
