/* Backend rvv: the templates over RISC-V Vector 1.0. */
#define TEMPLATE_NEEDS       "v"
#define TEMPLATE_DESCRIPTION "the templates with as many lanes as a vector register has"
#include "impl/kernels/backend.h"
