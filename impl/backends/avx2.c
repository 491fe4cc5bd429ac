/* Backend avx2: the templates over AVX2 with FMA. */
#define POSENC_SIMD          "../simd/simd_avx2.h"
#define TEMPLATE_BACKEND     posenc_backend_avx2
#define TEMPLATE_NAME        "avx2"
#define TEMPLATE_NEEDS       "avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "the templates with 8 lanes"
#include "impl/kernels/template.h"
