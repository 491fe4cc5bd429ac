/* Backend avx512: the templates over AVX-512 (F, BW, DQ, VL). */
#define TEMPLATE_NEEDS       "avx512f avx512bw avx512dq avx512vl avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "the templates with 16 lanes"
#include "impl/kernels/backend.h"
