/* Backend neon: the templates over Advanced SIMD of AArch64. */
#define POSENC_SIMD          "../simd/simd_neon.h"
#define TEMPLATE_BACKEND     posenc_backend_neon
#define TEMPLATE_NAME        "neon"
#define TEMPLATE_NEEDS       "neon"
#define TEMPLATE_DESCRIPTION "the templates with 4 lanes"
#include "impl/kernels/template.h"
