/*
 * A program outside of the tree that uses an installed posenc: rotates one head and checks that the rotation changes
 * the head and keeps its norm.
 */
#include <math.h>
#include <posenc/backend.h>
#include <posenc/experimental.h>
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
    table.cos = posenc_tensor_2d(POSENC_DTYPE_F32, cosines, TOKENS, DIM / 2);
    table.sin = posenc_tensor_2d(POSENC_DTYPE_F32, sines, TOKENS, DIM / 2);
    struct posenc_rope_args rope = posenc_rope_args_init();
    rope.cos = posenc_const_view(table.cos);
    rope.sin = posenc_const_view(table.sin);
    rope.out = posenc_tensor_3d(POSENC_DTYPE_F32, x, TOKENS, 1, DIM);
    enum posenc_status status = posenc_rope_table(NULL, &table, NULL);
    if (status == POSENC_OK)
        status = posenc_rope_half(NULL, &rope, NULL);
    posenc_freqs_destroy(freqs);
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < DIM; i++)
            after += (double)x[t][0][i] * (double)x[t][0][i];
    /* Position 0 rotates nothing, position 1 does. The comparison fails for NaN, too. */
    if (status != POSENC_OK || x[1][0][0] == 0.5f || !(fabs(after - before) <= 1e-5 * before)) {
        printf("%s: norm %.9g, then %.9g\n", posenc_status_string(status), before, after);
        return 1;
    }
    printf("posenc %s: %s runs rope_half\n", posenc_version(),
           posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).backend->name);
    return 0;
}
