/* Backend sleef_avx512: the table kernels over SLEEF's f32 sine and cosine of 16 lanes. */
#define TEMPLATE_NEEDS       "avx512f avx512bw avx512dq avx512vl avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "SLEEF f32 sine and cosine on a reduced phase, 16 lanes"
#include "impl/kernels/backend.h"
