/* Backend scalar: the templates over one lane of plain C. */
#define POSENC_SIMD      "../simd/simd_scalar.h"
#define TEMPLATE_BACKEND posenc_backend_scalar
#define TEMPLATE_NAME    "scalar"
#define TEMPLATE_NEEDS   ""
#define TEMPLATE_DESCRIPTION                                                                   \
    "the templates with one lane; fma() is a call where the CPU lacks it"
#include "impl/kernels/template.h"
