/* Upper bounds of scores from weights in codes of four bits, in terms of one vector type of bytes;
 * included by vector.h. The file of each instruction set defines before: bytes, BYTES of them a
 * vector, VECTORS a step; repeat16(p) of 16 bytes in all lanes of 16, look_up(table, v) lane by
 * lane, and first_pairs(low, high) and last_pairs(low, high) of the first and the last 8 bytes of
 * each lane, which are numbers of 16 bits.
 */
typedef uint8_t octets __attribute__((vector_size(BYTES)));
typedef octets unaligned_octets __attribute__((aligned(1), may_alias));
typedef uint16_t pairs __attribute__((vector_size(BYTES)));

enum { STEP = VECTORS * BYTES, LINE = 64, CODES_AHEAD = 8 * LINE };

/* p[0], p[2], ... = the greatest of 8 numbers of both. */
INLINE void put_greatest(uint16_t *p, pairs a, pairs b) {
    for (int lane = 0; lane < BYTES / 2; lane += 8) {
        uint16_t most = 0;
        for (int i = lane; i < lane + 8; i++) {
            uint16_t more = a[i] > b[i] ? a[i] : b[i];
            most = more > most ? more : most;
        }
        p[lane / 4] = most;
    }
}

/* Codes at .. at + STEP - 1 of the rows, whose sums stay in registers. */
INLINE void bounds_of_step(uint16_t *greatest, const uint8_t *const *codes, const uint8_t *tables,
                           int64_t count, int64_t at) {
    pairs a[VECTORS] = {0}, b[VECTORS] = {0}, c[VECTORS] = {0}, d[VECTORS] = {0};
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *row = codes[i] + at;
        bytes low = repeat16(tables + 32 * i), high = repeat16(tables + 32 * i + 16);
        for (int64_t line = 0; line < STEP; line += LINE)
            __builtin_prefetch(row + line + CODES_AHEAD);
        _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++) {
            octets x = *(const unaligned_octets *)(row + v * BYTES);
            bytes y = (bytes)(x & 15), z = (bytes)(x >> 4);
            bytes p = look_up(low, y), q = look_up(high, y);
            a[v] += (pairs)first_pairs(p, q), b[v] += (pairs)last_pairs(p, q);
            p = look_up(low, z), q = look_up(high, z);
            c[v] += (pairs)first_pairs(p, q), d[v] += (pairs)last_pairs(p, q);
        }
    }
    for (int v = 0; v < VECTORS; v++) {
        put_greatest(greatest + v * BYTES / 8, a[v], b[v]);
        put_greatest(greatest + v * BYTES / 8 + 1, c[v], d[v]);
    }
}

static void class_bounds(uint16_t *greatest, const uint8_t *const *codes, const uint8_t *tables,
                         int64_t count, int64_t size) {
    for (int64_t at = 0; at < size; at += STEP)
        bounds_of_step(greatest + at / 8, codes, tables, count, at);
}
