/* A made-up suite for the kernel of tiny.c. --quick has steps of 1 only, --full also others. Exits 1 if the kernel is
 * wrong. */
#include "tiny.h"

#include <string.h>

enum { ROOM = 64, UNTOUCHED = -77 };

static int check(int64_t n, int64_t x_step, int64_t out_step)
{
    float x[ROOM], memory[2 * ROOM], *out = memory + ROOM; /* mutants also write before it */

    for (int i = 0; i < 2 * ROOM; i++)
        memory[i] = UNTOUCHED;
    for (int i = 0; i < ROOM; i++)
        x[i] = (float)(i + 1);
    plain_scale(&(struct scale_args){ x, out, n, x_step, out_step, 0.5f, 0.75f });
    for (int i = 0; i < ROOM; i++)
        if (memory[i] != UNTOUCHED)
            return 1;
    for (int64_t i = 0; i < ROOM; i++) {
        float value = (float)(i / out_step * x_step + 1) * 0.5f;
        float right = value < 0.75f ? 0.75f : value;
        if (out[i] != (i % out_step == 0 && i / out_step < n ? right : UNTOUCHED))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--full") == 0)
        return check(5, 1, 1) | check(7, 2, 3) | check(0, 1, 1);
    return check(5, 1, 1);
}
