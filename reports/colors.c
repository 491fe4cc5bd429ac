/*
 * A colour for each backend, the same in every picture.  Kinds of backends are hues: blue and green
 * those with the same bits everywhere, purple SLEEF, orange and yellow the compiler's, grey libm;
 * those of another instruction set have the colours of their counterparts, since no machine has
 * both.  Of the eleven, of white and of black, no two are closer than 25 in CIELAB (1976) to eyes
 * that see all colours, or lack red, green or blue receptors (Machado, Oliveira and Fernandes 2009).
 */
#include "colors.h"

#include <string.h>

static const struct {
    const char *backend, *color;
} table[] = {
    { "avx512_bf16", "#132B79" }, { "avx512", "#005FD9" },       { "sve", "#005FD9" },
    { "rvv", "#005FD9" },         { "avx2", "#A9D3FA" },         { "neon", "#A9D3FA" },
    { "scalar", "#25A55C" },      { "sleef_avx512", "#960056" }, { "sleef_avx2", "#BF56AF" },
    { "sleef_neon", "#BF56AF" },  { "autovec_v4", "#EE7219" },   { "autovec_sve", "#EE7219" },
    { "autovec_rvv", "#EE7219" }, { "autovec_v3", "#F7D312" },   { "autovec_neon", "#F7D312" },
    { "libm", "#9E9E9E" },
};

/* For those that the table does not know, plug-ins, in the order in which the records name them. */
static const char *const others[] = { "#665600", "#551711" };

static const char *find(const char *backend)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].backend, backend) == 0)
            return table[i].color;
    return NULL;
}

const char *backend_color(const struct results *r, const char *backend)
{
    const char *color = find(backend);
    size_t before = 0;
    for (size_t b = 0; r && b < r->n_backends && strcmp(r->backends[b].id, backend) != 0; b++)
        before += find(r->backends[b].id) == NULL;
    return color ? color : others[before % (sizeof others / sizeof *others)];
}
