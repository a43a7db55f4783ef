/* Upper bounds of scores from weights in codes of four bits, in terms of one vector type of bytes;
 * included by vector.h. The file of each instruction set defines before: bytes, BYTES of them a
 * vector, VECTORS a step; load_bytes(p), low_halves(v) and high_halves(v) of each byte, repeat16(p)
 * of 16 bytes in all lanes of 16, look_up(table, v) lane by lane; and for pairs of bytes, which are
 * numbers of 16 bits: no_pairs(), add_pairs(a, b), max_pairs(a, b), first_pairs(low, high) and
 * last_pairs(low, high) of the first and the last 8 bytes of each lane, and put_greatest(p, v):
 * p[0], p[2], ... = the greatest number of each lane.
 */
enum { STEP = VECTORS * BYTES, LINE = 64, CODES_AHEAD = 8 * LINE };

/* Codes at .. at + STEP - 1 of the rows, whose sums stay in registers. */
INLINE void bounds_of_step(uint16_t *greatest, const uint8_t *const *codes, const uint8_t *tables,
                           int64_t count, int64_t at) {
    bytes a[VECTORS], b[VECTORS], c[VECTORS], d[VECTORS];
    for (int v = 0; v < VECTORS; v++)
        a[v] = b[v] = c[v] = d[v] = no_pairs();
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *row = codes[i] + at;
        bytes low = repeat16(tables + 32 * i), high = repeat16(tables + 32 * i + 16);
        for (int64_t line = 0; line < STEP; line += LINE)
            __builtin_prefetch(row + line + CODES_AHEAD);
        _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++) {
            bytes x = load_bytes(row + v * BYTES), y = low_halves(x), z = high_halves(x);
            bytes p = look_up(low, y), q = look_up(high, y);
            a[v] = add_pairs(a[v], first_pairs(p, q)), b[v] = add_pairs(b[v], last_pairs(p, q));
            p = look_up(low, z), q = look_up(high, z);
            c[v] = add_pairs(c[v], first_pairs(p, q)), d[v] = add_pairs(d[v], last_pairs(p, q));
        }
    }
    for (int v = 0; v < VECTORS; v++) {
        put_greatest(greatest + v * BYTES / 8, max_pairs(a[v], b[v]));
        put_greatest(greatest + v * BYTES / 8 + 1, max_pairs(c[v], d[v]));
    }
}

static void class_bounds(uint16_t *greatest, const uint8_t *const *codes, const uint8_t *tables,
                         int64_t count, int64_t size) {
    for (int64_t at = 0; at < size; at += STEP)
        bounds_of_step(greatest + at / 8, codes, tables, count, at);
}
