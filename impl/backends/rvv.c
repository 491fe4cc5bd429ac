/* Backend rvv: the templates over RISC-V Vector 1.0. */
#define POSENC_SIMD          "../simd/simd_rvv.h"
#define TEMPLATE_BACKEND     posenc_backend_rvv
#define TEMPLATE_NAME        "rvv"
#define TEMPLATE_NEEDS       "v"
#define TEMPLATE_DESCRIPTION "the templates with as many lanes as a vector register has"
#include "impl/kernels/template.h"
