/* What both solvers of the squared hinge loss share. They learn one strip of classes of a batch
 * after the other, so each document has a place among its labels. */
#pragma once

#include "classify/class_objective.h"

/* M. The weights are proportional to it, so it does not affect which score is the highest. With
 * this value, the softmax of the scores is close to the class probabilities. */
#define MARGIN ((real)4)

typedef struct {
    int64_t *places; /* (batch) position of each document's next label; labels ascend */
    int64_t *ends;   /* (batch) end of each document's labels */
    double *losses;  /* (batch) */
} hinge_batch;

static inline void open_hinge_batch(hinge_batch *h, dcme_arena *arena, int64_t batch) {
    DCME_TAKE_UNSET(arena, h->places, batch);
    DCME_TAKE_UNSET(arena, h->ends, batch);
    DCME_TAKE_UNSET(arena, h->losses, batch);
}

static inline void begin_hinge_batch(hinge_batch *h, const dcme_batch *batch, const int64_t *sets) {
    for (int64_t d = 0; d < batch->count; d++) {
        int64_t i = batch->numbers[d];
        h->places[d] = sets ? sets[i] : i;
        h->ends[d] = sets ? sets[i + 1] : i + 1;
        h->losses[d] = 0;
    }
}

/* Add the losses of all documents, scaled as if M were 1. */
static inline void end_hinge_batch(hinge_batch *h, const dcme_batch *batch, dcme_loss *loss) {
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, batch->weights[d] * (h->losses[d] / (2 * MARGIN * MARGIN)));
}

/* Return whether a line of DCME_PAD classes has a number other than 0. */
static inline int has_number(const real *line) {
    int32_t found = 0;
    for (int64_t j = 0; j < DCME_PAD; j++)
        found |= line[j] != 0;
    return found;
}
