/* Backend sve: the templates over the Scalable Vector Extension, of the CPU's own length. */
#define TEMPLATE_NEEDS       "sve sve_pow2"
#define TEMPLATE_DESCRIPTION "the templates with as many lanes as the CPU has"
#include "impl/kernels/backend.h"
