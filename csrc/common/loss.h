/* Sum of the losses of sampled instances: computing logarithms for every instance
 * can cost more than learning from it. */
#pragma once

#include <stdint.h>

typedef struct {
    double sum;
    int64_t count;
    int64_t seen;
} dcme_loss;

/* The loss is sampled for one of this many words, block targets or documents. Block targets are
 * sampled least often because the loss of one takes a logarithm per noise sample. */
enum { DCME_LOSS_EVERY = 64, DCME_BLOCK_LOSS_EVERY = 256, DCME_CLASS_LOSS_EVERY = 16 };

/* Whether the loss of this instance is sampled; one in `every` is. */
static inline int dcme_loss_wanted(dcme_loss *loss, int every) { return loss->seen++ % every == 0; }

static inline void dcme_loss_add(dcme_loss *loss, double value) {
    loss->sum += value;
    loss->count++;
}
