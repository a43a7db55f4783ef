/* The id cache as training reads it, with options of all kinds, stopped and resumed. */
#include "fuzz.h"
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 8, ITEMS = 40, MOST = 1500 };

const fuzz_token fuzz_seeds[] = {
    FUZZ_TOKEN("\0\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\x80\1\0\0\0"),
    FUZZ_TOKEN("\1\1\2\1\3\2\1\0\1\0\0\0\2\0\0\0\3\0\0\x80\1\0\0\0\5\0\0\0\6\0\0\0\7\0\0\x80"),
    FUZZ_TOKEN("\0\2\1\4\7\3\0\1\1\0\0\0\2\0\0\0\3\0\0\x80\1\0\0\0\5\0\0\0\6\0\0\0\7\0\0\x80"),
    FUZZ_TOKEN("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\x80"),
    FUZZ_TOKEN("\xff\xff\xff\xff"),
    FUZZ_TOKEN("\x27\0\0\x80"),
    FUZZ_TOKEN("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    {NULL, 0},
};

static dcme_train_options options_of(const uint8_t *head) {
    return (dcme_train_options){.model = head[0] % 2,
                                .objective = head[1] % 3,
                                .dim = 1 + head[2] % 20,
                                .window = 1 + head[3] % 12,
                                .window_mode = head[4] % 2,
                                .negative = 1 + head[5] % 6,
                                .noise_power = head[6] & 1 ? 0.75 : 0,
                                .clusters = 1 + head[6] % 4,
                                .top_items = head[7] % 9,
                                .beta = 0.1,
                                .virtual_samples = head[7] & 1 ? 2 : 1,
                                .block = 1,
                                .epochs = 2,
                                .sample = head[4] & 4 ? 1e-2 : 0,
                                .lr = 0.01,
                                .min_lr = 0.001,
                                .gradient = head[3] & 1,
                                .threads = 1 + (head[5] & 1),
                                .seed = head[2]};
}

static void train(const dcme_train_options *options, const dcme_corpus *corpus, real *tables) {
    dcme_trainer *trainer = NULL;
    dcme_progress progress;
    int64_t size = ITEMS * dcme_stride(options->dim), largest = 0;
    memset(tables, 0, (size_t)(2 * size) * sizeof *tables);
    for (int64_t i = 0; i < corpus->length; i++)
        if ((int64_t)(corpus->ids[i] & ~DCME_SENTENCE_END) > largest)
            largest = corpus->ids[i] & ~DCME_SENTENCE_END;
    dcme_status status =
        dcme_trainer_open(&trainer, options, corpus, tables, tables + size, NULL, "scalar", NULL);
    FUZZ_REQUIRE((status == DCME_OK) == (largest < ITEMS));
    if (status != DCME_OK) {
        dcme_trainer_close(trainer);
        return;
    }
    dcme_engine *engine = dcme_trainer_engine(trainer);
    dcme_engine_stop(engine);
    FUZZ_REQUIRE(dcme_engine_epoch(engine, 0, NULL) == DCME_STOPPED);
    FUZZ_REQUIRE(dcme_engine_restored(engine, NULL) == DCME_OK);
    status = dcme_engine_epoch(engine, 0, NULL);
    FUZZ_REQUIRE(status == DCME_OK || status == DCME_DIVERGED);
    dcme_engine_progress(engine, &progress);
    if (status == DCME_OK)
        FUZZ_REQUIRE(progress.trained + progress.subsampled + progress.without_context ==
                     corpus->length);
    dcme_trainer_close(trainer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int64_t counts[ITEMS];
    if (size < HEAD + sizeof(uint32_t))
        return 0;
    dcme_train_options options = options_of(data);
    int64_t length = (int64_t)((size - HEAD) / sizeof(uint32_t));
    length = length > MOST ? MOST : length;
    uint32_t *ids = malloc((size_t)length * sizeof *ids);
    real *tables = dcme_allocate(2 * ITEMS * dcme_stride(options.dim), sizeof *tables);
    if (ids && tables) {
        memcpy(ids, data + HEAD, (size_t)length * sizeof *ids);
        for (int64_t i = 0; i < length; i++) /* mostly valid ids */
            if (ids[i] % 64 != 63)
                ids[i] = (ids[i] & DCME_SENTENCE_END) | (ids[i] & ~DCME_SENTENCE_END) % ITEMS;
        for (int i = 0; i < ITEMS; i++)
            counts[i] = 100 / (i + 1) + 1;
        dcme_corpus corpus = {ids, length, counts, ITEMS, NULL};
        train(&options, &corpus, tables);
    }
    free(ids), dcme_free(tables);
    return 0;
}
