/* The learning-rate schedule of all training: linear decay over all epochs to a minimum. */
#pragma once

#include <stdint.h>

typedef struct {
    double lr, min_lr; /* initial and minimum learning rate */
    int64_t length;    /* positions per epoch */
    int64_t epochs;
} dcme_schedule;

static inline double dcme_learning_rate(const dcme_schedule *s, int64_t epoch, int64_t position) {
    double done = (double)epoch * (double)s->length + (double)position;
    double rate = s->lr * (1 - done / ((double)s->length * (double)s->epochs));
    return rate > s->min_lr ? rate : s->min_lr;
}
