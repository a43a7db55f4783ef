/* Token IDs in an encoded corpus. */
#pragma once

#include <stdint.h>

/* Bit 31 of an ID marks the last token of a sentence; the other bits are the word ID. */
#define DCME_SENTENCE_END UINT32_C(0x80000000)
