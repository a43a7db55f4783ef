/* A small training whose instructions `make test-speed` counts: speed cbow|skipgram|classes
 * scalar|avx2. Returns 0 on success.
 *
 * Compile it as setup.py does, with all of csrc; include paths csrc and tests/c.
 */
#define LARGER 12
#include "small_problems.h"

int main(int argc, char **argv) {
    dcme_trainer *trainer;
    dcme_classifier *classifier;
    if (argc != 3 || !dcme_kernels_choose(argv[2]))
        return 1;
    kernels_name = argv[2];
    make_problems();
    if (strcmp(argv[1], "classes") == 0) {
        dcme_classify_options options = class_options(DCME_CLASSIFY_GD, 1);
        DCME_TRY(open_classes(&classifier, &options, NULL));
        return dcme_engine_epoch(dcme_classifier_engine(classifier), 0, NULL);
    }
    int32_t model = strcmp(argv[1], "skipgram") == 0 ? DCME_SKIPGRAM : DCME_CBOW;
    dcme_train_options options = word_options(model, DCME_SHRINK, DCME_NS, 1);
    DCME_TRY(open_words(&trainer, &options, NULL));
    return dcme_engine_epoch(dcme_trainer_engine(trainer), 0, NULL);
}
