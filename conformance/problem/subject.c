/*
 * The library as a subject: see subject.h.
 */
#include "subject.h"

const struct subject subject_library = {
    .freqs_create = posenc_freqs_create,
    .alibi_slopes = posenc_alibi_slopes,
    .t5_thresholds = posenc_t5_thresholds,
    .padding_positions = posenc_padding_positions,
    .swin_index = posenc_swin_index,
    .beit_index = posenc_beit_index,
    .shaw_index = posenc_shaw_index,
    .transformer_xl_index = posenc_transformer_xl_index,
    .deberta_index = posenc_deberta_index,
#define POSENC_KERNEL(name, signature, ...) .name = posenc_##name,
#include <posenc_kernels.def>
};

struct subject subject_of(const struct posenc_backend *backend)
{
    struct subject subject = subject_library;
    subject.backend = backend;
    return subject;
}
