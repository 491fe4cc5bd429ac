/* Backend scalar: the templates over one lane of plain C. */
#define TEMPLATE_NEEDS ""
#define TEMPLATE_DESCRIPTION                                                                   \
    "the templates with one lane; fma() is a call where the CPU lacks it"
#include "impl/kernels/backend.h"
