/* Backend sleef_avx2: the table kernels over SLEEF's f32 sine and cosine of 8 lanes. */
#define TEMPLATE_NEEDS       "avx2 fma f16c"
#define TEMPLATE_DESCRIPTION "SLEEF f32 sine and cosine on a reduced phase, 8 lanes"
#include "impl/kernels/backend.h"
