/* Backend avx512_bf16: the templates over AVX-512 where bf16 is narrowed by an instruction. */
#define TEMPLATE_NEEDS       "avx512f avx512bw avx512dq avx512vl avx512bf16 avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "the templates with 16 lanes, bf16 narrowed by VCVTNEPS2BF16"
#include "impl/kernels/backend.h"
