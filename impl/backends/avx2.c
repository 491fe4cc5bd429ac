/* Backend avx2: the templates over AVX2 with FMA. */
#define TEMPLATE_NEEDS       "avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "the templates with 8 lanes"
#include "impl/kernels/backend.h"
