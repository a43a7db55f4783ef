/* Token ids of an encoded corpus. */
#pragma once

#include <stdint.h>

/* Bit 31 of an id marks the last token of a sentence; the other bits are the word's number. */
#define DCME_SENTENCE_END UINT32_C(0x80000000)
