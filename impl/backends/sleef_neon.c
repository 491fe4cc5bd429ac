/* Backend sleef_neon: the table kernels over SLEEF's f32 sine and cosine of 4 lanes. */
#define TEMPLATE_NEEDS       "neon"
#define TEMPLATE_DESCRIPTION "SLEEF f32 sine and cosine on a reduced phase, 4 lanes"
#include "impl/kernels/backend.h"
