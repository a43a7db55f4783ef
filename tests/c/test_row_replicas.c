/* The updates of two threads in their copies of a row are added to the table, once each. */
#include "objectives/row_replicas.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 1000, STRIDE = 16, STEPS = 20000 };
static const int32_t COPIED = 3, SHARED = ITEMS - 1;
static int failures;

static void expect(double found, double wanted, const char *what) {
    if (found != wanted) {
        printf("%s: %g, expected %g\n", what, found, wanted);
        failures++;
    }
}

/* Each of two threads adds 1 to a copied row and to one that is not, STEPS times. */
static void check_two(const dcme_model *model) {
    dcme_row_replicas replicas[2];
    dcme_arena arena = {0};
    dcme_replicas_open(&replicas[0], &arena, model, 2);
    dcme_replicas_open(&replicas[1], &arena, model, 2);
    if (arena.status != DCME_OK)
        abort();
    model->output[COPIED * STRIDE] = 5;
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < 2; k++) {
            dcme_replicas_begin(&replicas[k]);
            if (i == 0)
                expect(dcme_replica_row(&replicas[k], COPIED)[0], 5, "the copy at first");
            dcme_replica_row(&replicas[k], COPIED)[0] += 1;
            dcme_replica_row(&replicas[k], SHARED)[0] += 1;
            dcme_replicas_step(&replicas[k]);
        }
    double seen = dcme_replica_row(&replicas[0], COPIED)[0];
    if (!(seen > 5 + STEPS)) { /* its own updates and some of the other's */
        printf("a copy has %g after %d updates of each\n", seen, STEPS);
        failures++;
    }
    dcme_replicas_end(&replicas[0]);
    dcme_replicas_end(&replicas[1]);
    expect(model->output[COPIED * STRIDE], 5 + 2 * STEPS, "the row with two copies");
    expect(model->output[SHARED * STRIDE], 2 * STEPS, "the row without copies");
    model->output[COPIED * STRIDE] = 7; /* as after restoring a checkpoint */
    dcme_replicas_begin(&replicas[0]);
    expect(dcme_replica_row(&replicas[0], COPIED)[0], 7, "the copy after a rest");
    dcme_arena_close(&arena);
}

static void check_one(const dcme_model *model) {
    dcme_row_replicas replicas;
    dcme_arena arena = {0};
    dcme_replicas_open(&replicas, &arena, model, 1);
    dcme_replicas_begin(&replicas);
    for (int32_t word = 0; word < ITEMS; word++)
        if (dcme_replica_row(&replicas, word) != model->output + word * STRIDE) {
            printf("a single thread has a copy of row %d\n", (int)word);
            failures++;
        }
    dcme_arena_close(&arena);
}

int main(void) {
    real *output = calloc(ITEMS * STRIDE, sizeof *output);
    if (!output)
        abort();
    dcme_model model = {.items = ITEMS,
                        .stride = STRIDE,
                        .size = STRIDE,
                        .output = output,
                        .kernels = &dcme_kernels_scalar};
    check_two(&model);
    check_one(&model);
    free(output);
    if (!failures)
        printf("copies of rows: %d synchronizations each\n", STEPS / 16);
    return failures > 0;
}
