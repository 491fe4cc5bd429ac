/* Backend neon: the templates over Advanced SIMD of AArch64. */
#define TEMPLATE_NEEDS       "neon"
#define TEMPLATE_DESCRIPTION "the templates with 4 lanes"
#include "impl/kernels/backend.h"
