/* The training loop, from top to bottom. A batch of sentences is read, and some of the frequent
 * words are dropped; each remaining word is a target. The objective draws rows for targets a few
 * steps ahead, and all their rows are prefetched. Then the target's context vector is computed,
 * scored and updated.
 *
 * Score. For context h and drawn rows v_j with labels y_j, offsets o_j and weights w_j
 *     s_j = v_j . h - o_j,   e_j = w_j (y_j - sigma(s_j)),   v_j += rate r_j e_j h,
 * and the direction of h is g = sum_j e_j v_j with the rows as they were scored: the gradient of
 * sum_j w_j log sigma((2 y_j - 1) s_j). Only noise samples have offsets, or weights other than 1;
 * with such weights, steps along a long h are implicit (noise.h).
 *
 * Context. In continuous bag of words (Mikolov et al. 2013) h_t is the mean of the m_t input rows
 * around the target, and the gradient of each of them is g_t / m_t (equation 18 of the DCME paper);
 * word2vec.c omits the division by m_t.
 *
 * With word order the score is v . (h_t + l_a + r_b): the words a and b just left and right of the
 * target have separate rows in two more tables, l and r, in addition to their rows in h_t. These
 * rows are updated immediately by a multiple of g_t. A target at an end of its sentence has one
 * neighbor.
 */
#include "words/internal.h"

/* A neighbor row occurs with fewer targets than an input row and is the only term of its sum, so
 * its rate is this multiple of the learning rate. */
static const real NEIGHBOR_RATE = 4;

/* Append the kept words of one sentence, and return the position after it. The choice is made
 * without a branch, which would be unpredictable. */
static int64_t read_sentence(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    dcme_sentence_batch *batch = &worker->batch;
    const uint32_t *ids = trainer->corpus.ids, *keep = trainer->keep;
    int64_t begin = batch->length, length = begin, first = position;
    uint64_t stream = worker->subsample_stream;
    uint32_t id;
    do {
        id = ids[position++];
        uint32_t word = id & ~DCME_SENTENCE_END;
        batch->words[length] = (int32_t)word;
        length += !keep || (uint32_t)(dcme_random(&stream) >> 32) <= keep[word];
    } while (!(id & DCME_SENTENCE_END) && position < end);
    if (keep)
        worker->subsample_stream = stream;
    worker->done->subsampled += position - first - (length - begin);
    if (length - begin == 1) {
        worker->done->without_context++;
        length = begin;
    }
    for (int64_t i = begin; i < length; i++) {
        batch->begin[i] = (int32_t)begin;
        batch->end[i] = (int32_t)length;
    }
    batch->length = length;
    return position;
}

/* Starting at token `position`, read sentences until the batch is full or `end` is reached. */
static int64_t read_batch(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_engine *engine = &worker->trainer->engine;
    worker->batch.length = 0;
    worker->batch.rate = (real)dcme_learning_rate(&engine->schedule, engine->epoch, position);
    worker->done->rate = worker->batch.rate;
    while (position < end && worker->batch.length < DCME_BATCH_WORDS)
        position = read_sentence(worker, position, end);
    return position;
}

/* Return the negative logarithm of the likelihood that a step ascends. */
static double loss_of(const dcme_draw *draw, const real *scores, double weight) {
    double loss = 0;
    for (int64_t j = 0; j < draw->count; j++)
        loss += dcme_label_of(draw->codes[j]) ? dcme_softplus(-(double)scores[j])
                                              : weight * dcme_softplus(scores[j]);
    return loss;
}

/* Turn scores into the errors e_j. The kernel treats only the first row as labeled 1. */
static void to_errors(dcme_worker *worker, const dcme_draw *draw, int64_t count) {
    real *errors = worker->errors, weight = worker->draws.weight;
    worker->trainer->model.kernels->residuals(errors, worker->scores, count);
    for (int64_t j = 0; worker->trainer->options.objective == DCME_HS && j < count; j++)
        errors[j] += (real)dcme_label_of(draw->codes[j]) - (j == 0);
    for (int64_t j = 1; weight != 1 && j < count; j++)
        errors[j] *= weight;
}

void dcme_learn_target(dcme_worker *worker, int32_t target, const real *h, real *gradient) {
    const dcme_model *model = &worker->trainer->model;
    const real *offset = worker->trainer->noise.offset;
    dcme_draws *draws = &worker->draws;
    dcme_loss *loss = &worker->done->loss;
    real rate = worker->batch.rate, **rows = worker->drawn, *scores = worker->scores,
         *steps = scores;
    if (worker->paper.clusters) {
        dcme_paper_step(&worker->paper, target, rate, h, gradient, loss);
        return;
    }
    const dcme_draw *draw = dcme_draws_pop(draws);
    int64_t count = draw->count;
    int is_implicit = draws->weight != 1;
    for (int64_t j = 0; j < count; j++)
        rows[j] = dcme_replica_row(&draws->replicas, dcme_row_of(draw->codes[j]));
    rows[count] = (real *)h;
    dcme_dots(model->kernels, scores, h, rows, count + is_implicit, model->size);
    if (is_implicit)
        rate = dcme_implicit_rate(rate, draws->weight, scores[count]);
    for (int64_t j = 0; offset && j < count; j++)
        scores[j] -= offset[dcme_row_of(draw->codes[j])];
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY))
        dcme_loss_add(loss, loss_of(draw, scores, draws->weight));
    to_errors(worker, draw, count);
    for (int64_t j = 0; j < count; j++)
        steps[j] = rate * dcme_rate_of(model, dcme_row_of(draw->codes[j])) * worker->errors[j];
    model->kernels->update(gradient, h, rows, worker->errors, steps, count, model->size);
    dcme_replicas_step(&draws->replicas);
}

/* If word order is used, return the rows of the neighbors of position i (at most two). */
static int64_t neighbor_rows(const dcme_worker *worker, int64_t i, real **rows) {
    const dcme_model *model = &worker->trainer->model;
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t count = 0;
    if (i > batch->begin[i])
        rows[count++] = model->neighbors[0] + batch->words[i - 1] * model->stride;
    if (i + 1 < batch->end[i])
        rows[count++] = model->neighbors[1] + batch->words[i + 1] * model->stride;
    return count;
}

static void prefetch_neighbors(const dcme_worker *worker, int64_t i) {
    real *rows[2];
    for (int64_t k = neighbor_rows(worker, i, rows); k-- > 0;)
        dcme_prefetch(rows[k], worker->trainer->model.stride);
}

static void add_neighbors(const dcme_worker *worker, int64_t i, real *h) {
    const dcme_model *model = &worker->trainer->model;
    real *rows[2];
    int64_t count = neighbor_rows(worker, i, rows);
    model->kernels->weighted_sum(h, rows, (const real[]){1, 1}, count, model->size);
}

static void move_neighbors(const dcme_worker *worker, int64_t i, const real *gradient) {
    const dcme_model *model = &worker->trainer->model;
    real *rows[2], rate = NEIGHBOR_RATE * worker->batch.rate;
    int64_t count = neighbor_rows(worker, i, rows);
    dcme_rank1_update(model->kernels, rows, (const real[]){rate, rate}, gradient, count,
                      model->size);
}

void dcme_draw_ahead(dcme_worker *worker, int64_t i) {
    if (i >= worker->batch.length)
        return;
    worker->draws.draw(&worker->draws, worker->batch.words[i]);
    if (worker->trainer->model.neighbors[0])
        prefetch_neighbors(worker, i);
}

void dcme_learn_targets(dcme_worker *worker, int64_t i, int64_t count) {
    const dcme_trainer *trainer = worker->trainer;
    const int32_t *targets = worker->batch.words + i;
    int64_t stride = trainer->model.stride, ordered = trainer->model.neighbors[0] ? count : 0;
    for (int64_t t = 0; t < ordered; t++)
        add_neighbors(worker, i + t, worker->h + t * stride);
    if (trainer->options.block > 1)
        dcme_blocks_step(&worker->blocks, targets, count, worker->batch.rate, &worker->done->loss);
    else
        dcme_learn_target(worker, *targets, worker->h, worker->gradient);
    for (int64_t t = 0; t < ordered; t++)
        move_neighbors(worker, i + t, worker->gradient + t * stride);
}

static void learn_cbow(dcme_worker *worker) {
    const dcme_model *model = &worker->trainer->model;
    const dcme_kernels *kernels = model->kernels;
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t ahead = worker->trainer->options.window + 1 + DCME_AHEAD;
    real **rows = worker->rows, *rates = worker->rates, *steps = worker->steps;

    /* rows[] has no entry for the target, so that the rows of a context are adjacent: entries
     * before the target are at their word's position, later ones one position lower. */
    for (int64_t i = 1; i < batch->length; i++) {
        rows[i - 1] = model->input + batch->words[i] * model->stride;
        rates[i - 1] = dcme_input_rate(model, batch->words[i]);
    }
    for (int64_t i = 0; i < ahead; i++)
        dcme_prefetch_input(worker, i);
    dcme_prefetch_first(worker);
    for (int64_t i = 0; i < batch->length; i++) {
        dcme_span near = dcme_window_at(worker, i);
        real **context = rows + near.from;
        int64_t count = near.to - near.from - 1;
        dcme_prefetch_input(worker, i + ahead);
        dcme_draw_ahead(worker, i + DCME_AHEAD);
        kernels->mean(worker->h, 1 / (real)count, context, count, model->size);
        dcme_learn_targets(worker, i, 1);
        real step = batch->rate * dcme_input_weight(worker, (real)count);
        for (int64_t k = 0; k < count; k++)
            steps[k] = step * rates[near.from + k];
        dcme_rank1_update(kernels, context, steps, worker->gradient, count, model->size);
        rates[i] = dcme_input_rate(model, batch->words[i]);
        rows[i] = model->input + batch->words[i] * model->stride; /* the gap moves on */
    }
}

int64_t dcme_learn_batch(void *argument, int64_t position, int64_t end) {
    dcme_worker *worker = argument;
    const dcme_train_options *options = &worker->trainer->options;
    position = read_batch(worker, position, end);
    dcme_replicas_begin(&worker->draws.replicas);
    if (options->model == DCME_SKIPGRAM)
        dcme_learn_skipgram(worker);
    else if (worker->trainer->corpus.subwords)
        dcme_learn_subwords(worker);
    else if (options->window_mode == DCME_SHRINK)
        learn_cbow(worker);
    else
        dcme_learn_fixed_windows(worker);
    worker->done->trained += worker->batch.length;
    return position;
}
