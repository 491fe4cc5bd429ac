/*
 * A program outside of the tree that uses an installed posenc: rotates one head and checks that the rotation changes
 * the head and keeps its norm.
 */
#include <math.h>
#include <posenc.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 3, DIM = 8 };

int main(void)
{
    float x[TOKENS][1][DIM], cosines[TOKENS][DIM / 2], sines[TOKENS][DIM / 2];
    double before = 0.0, after = 0.0;
    for (int t = 0; t < TOKENS; t++) {
        for (int i = 0; i < DIM; i++) {
            x[t][0][i] = 0.25f * (float)(t + 1) + (float)i;
            before += (double)x[t][0][i] * (double)x[t][0][i];
        }
    }
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    spec.dim = DIM;
    if (strcmp(posenc_version(), POSENC_VERSION) != 0 ||
        posenc_freqs_create(&spec, &freqs, NULL) != POSENC_OK) {
        printf("posenc %s, built with %s: no frequencies\n", posenc_version(), POSENC_VERSION);
        return 1;
    }
    struct posenc_rope_table_args table = posenc_rope_table_args_init();
    table.freqs = freqs;
    /* Dense tensors of two dimensions: sizes after the second are unused. */
    table.cos = posenc_dense(cosines, 2, TOKENS, DIM / 2, 0, 0);
    table.sin = posenc_dense(sines, 2, TOKENS, DIM / 2, 0, 0);
    struct posenc_rope_args rope = posenc_rope_args_init();
    rope.cos = posenc_view(table.cos);
    rope.sin = posenc_view(table.sin);
    rope.out = posenc_dense(x, 3, TOKENS, 1, DIM, 0);
    rope.x = posenc_view(rope.out);
    enum posenc_status status = posenc_rope_table(NULL, &table);
    if (status == POSENC_OK)
        status = posenc_rope_half(NULL, &rope);
    posenc_freqs_destroy(freqs);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < DIM; i++)
            after += (double)x[t][0][i] * (double)x[t][0][i];
    /* Position 0 rotates nothing, position 1 does. The comparison fails for NaN, too. */
    if (status != POSENC_OK || x[1][0][0] == 0.5f || !(fabs(after - before) <= 1e-5 * before)) {
        printf("%s: norm %.9g, then %.9g\n", posenc_status_string(status), before, after);
        return 1;
    }
    printf("posenc %s: %s serves rope_half\n", posenc_version(),
           posenc_selection(POSENC_KERNEL_ROPE_HALF).backend->name);
    return 0;
}
