/* Backend avx512: the templates over AVX-512 (F, BW, DQ, VL). */
#define POSENC_SIMD          "../simd/simd_avx512.h"
#define TEMPLATE_BACKEND     posenc_backend_avx512
#define TEMPLATE_NAME        "avx512"
#define TEMPLATE_NEEDS       "avx512f avx512bw avx512dq avx512vl avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "the templates with 16 lanes"
#include "impl/kernels/template.h"
