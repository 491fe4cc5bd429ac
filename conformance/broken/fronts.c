/*
 * The front-end of sinusoidal encodings, mistaken in the stride of positions, or of several axes in their order
 * or frequency.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>

typedef enum posenc_status front_end(const struct posenc_backend *backend,
                                     const struct posenc_sinusoidal_args *args);

/* Where the positions on an axis begin. */
static const void *from_axis(const struct posenc_positions *p, int64_t axis)
{
    const int64_t size = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
    return (const char *)p->data + axis * p->stride_axis * size;
}

/* Encodes the section of each axis by itself; its frequencies go on where those of the section
 * before ended, theta^(-2i/dim) over all pairs. */
static enum posenc_status run_continued(front_end *real, const struct posenc_backend *backend,
                                        const struct posenc_sinusoidal_args *args)
{
    enum { MOST_PAIRS = 512 };
    double values[MOST_PAIRS];
    const struct posenc_freqs_view view = posenc_freqs_view(args->freqs);
    const int64_t size = (int64_t)storage_size(args->out.dtype);
    enum posenc_status status = view.n_pairs <= MOST_PAIRS ? POSENC_OK : POSENC_ERR_SHAPE;
    for (int64_t i = 0; status == POSENC_OK && i < view.n_pairs; i++)
        values[i] = pow(1e4, -(double)i / (double)view.n_pairs);
    for (int64_t from = 0, n; status == POSENC_OK && from < view.n_pairs; from += n) {
        struct posenc_freqs_spec spec = posenc_freqs_spec_init();
        struct posenc_freqs *freqs = NULL;
        struct posenc_sinusoidal_args part = *args;
        for (n = 1; from + n < view.n_pairs && view.axis[from + n] == view.axis[from];)
            n++;
        spec.dim = part.out.shape[part.out.rank - 1] = 2 * n;
        spec.profile = view.profile;
        spec.values = values + from;
        status = posenc_freqs_create(&spec, &freqs, NULL);
        part.freqs = freqs;
        part.positions.data = from_axis(&args->positions, view.axis[from]);
        part.out.data = (char *)part.out.data + 2 * from * size;
        status = status == POSENC_OK ? real(backend, &part) : status;
        posenc_freqs_destroy(freqs);
    }
    return status;
}

/* All tokens of a batch at its first position: each is a batch of one token, which have one in common. */
static enum posenc_status run_repeated(front_end *real, const struct posenc_backend *backend,
                                       const struct posenc_sinusoidal_args *args)
{
    const int last = args->out.rank - 1, wide = last == 2;
    const int64_t size = (int64_t)storage_size(args->out.dtype);
    const int64_t item = args->positions.kind == POSENC_POSITIONS_I64 ? 8 : 4;
    enum posenc_status status = POSENC_OK;
    for (int64_t b = 0; b < (wide ? args->out.shape[0] : 1) && status == POSENC_OK; b++) {
        struct posenc_sinusoidal_args part = *args;
        part.out.rank = part.x.rank = 3;
        for (int i = 0; i < 3; i++) { /* tokens, one, channels */
            const int from = i == 0 ? last - 1 : last;
            part.out.shape[i] = part.x.shape[i] = i == 1 ? 1 : args->out.shape[from];
            part.out.stride[i] = args->out.stride[from];
            part.x.stride[i] = args->x.stride[from];
        }
        part.out.data = (char *)part.out.data + (wide ? b * args->out.stride[0] * size : 0);
        if (part.x.data)
            part.x.data = (const char *)part.x.data + (wide ? b * args->x.stride[0] * size : 0);
        part.positions.data =
            (const char *)part.positions.data + b * part.positions.stride_batch * item;
        part.positions.stride_batch = 0;
        status = real(backend, &part);
    }
    return status;
}

/* Mistaken only where each axis has positions of its own; or where an array has no stride. */
static enum posenc_status run_mistaken(front_end *real, const struct posenc_backend *backend,
                                       const struct posenc_sinusoidal_args *args)
{
    struct posenc_sinusoidal_args a = *args;
    const bool axes = a.freqs && posenc_freqs_view(a.freqs).n_axes > 1 &&
                      a.positions.kind != POSENC_OFFSET && a.positions.stride_axis != 0;
    const bool unsaid = a.positions.kind != POSENC_OFFSET && a.positions.stride_token == 0;
    if (SLIP(stride_kept) ? unsaid : axes)
        mistake_made();
    if (SLIP(stride_kept))
        return unsaid ? run_repeated(real, backend, &a) : real(backend, &a);
    if (axes && SLIP(axes_from_the_last)) { /* a picture's x where its y was meant */
        a.positions.data = from_axis(&a.positions, posenc_freqs_view(a.freqs).n_axes - 1);
        a.positions.stride_axis = -a.positions.stride_axis;
    }
    return axes && SLIP(axes_continued) ? run_continued(real, backend, &a) : real(backend, &a);
}

static enum posenc_status sinusoidal(const struct posenc_backend *backend,
                                     const struct posenc_sinusoidal_args *args)
{
    return run_mistaken(posenc_sinusoidal, backend, args);
}

static enum posenc_status sinusoidal_add(const struct posenc_backend *backend,
                                         const struct posenc_sinusoidal_args *args)
{
    return run_mistaken(posenc_sinusoidal_add, backend, args);
}

void take_fronts(struct implementation *implementation)
{
    if (mistake_now->how == HOW_front && mistake_now->kernel == POSENC_KERNEL_sinusoidal)
        implementation->sinusoidal = sinusoidal;
    if (mistake_now->how == HOW_front && mistake_now->kernel == POSENC_KERNEL_sinusoidal_add)
        implementation->sinusoidal_add = sinusoidal_add;
}
