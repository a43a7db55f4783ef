/* A small training whose instructions `make test-speed` counts: speed cbow|skipgram|classes
 * scalar|avx2. Returns 0 on success.
 *
 * Compile it as setup.py does, with all of csrc; include paths csrc and tests/c.
 */
#define LARGER 12
#include "small_problems.h"

int main(int argc, char **arguments) {
    int32_t model = strcmp(arguments[1], "skipgram") == 0 ? DCME_SKIPGRAM : DCME_CBOW;
    dcme_train_options words = word_options(model, DCME_SHRINK, DCME_NS, 1);
    dcme_classify_options classes = class_options(DCME_CLASSIFY_GD, 1);
    dcme_trainer *trainer;
    dcme_classifier *classifier;
    kernels_name = arguments[2];
    if (!dcme_kernels_choose(kernels_name))
        return 1;
    make_problems();
    if (strcmp(arguments[1], "classes") == 0) {
        DCME_TRY(open_classes(&classifier, &classes, NULL));
        return dcme_engine_epoch(dcme_classifier_engine(classifier), 0, NULL);
    }
    DCME_TRY(open_words(&trainer, &words, NULL));
    return dcme_engine_epoch(dcme_trainer_engine(trainer), 0, NULL);
}
