/*
 * Plans, as an offer: a spec of any scaling in any profile, its size, its arrays, and what the view of an accepted one
 * holds.
 */
#define _GNU_SOURCE
#include "offers.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

enum argument {
    NO_SPEC,
    NO_FREQS,
    SIZE,
    FILLED,
    PROFILE,
    CONVENTION,
    SCALING,
    DIM,
    THETA,
    FACTOR,
    ORIGINAL,
    LOW,
    HIGH,
    FAST,
    SLOW,
    TRUNCATE,
    ATTENTION,
    MSCALE,
    MSCALE_ALL,
    MOST,
    SEQ_LEN,
    PARTIAL,
    SHORT,
    LONG,
    SECTION,
    LAYOUT = SECTION + 3,
    XPOS,
    CENTRE,
    OWN,
    VALUES
};

/* ---- The spec ---- */

static struct posenc_freqs_spec whole_spec(const struct trial *t)
{
    const int64_t *n = t->whole;
    const double *x = t->real;
    struct posenc_freqs_spec s = posenc_freqs_spec_init();
    s.size = (size_t)n[SIZE];
    s.profile = (enum posenc_profile)n[PROFILE];
    s.convention = (enum posenc_convention)n[CONVENTION];
    s.scaling = (enum posenc_scaling)n[SCALING];
    s.dim = n[DIM];
    s.rope_theta = x[THETA];
    s.factor = x[FACTOR];
    s.original_max_position_embeddings = x[ORIGINAL];
    s.low_freq_factor = x[LOW];
    s.high_freq_factor = x[HIGH];
    s.beta_fast = x[FAST];
    s.beta_slow = x[SLOW];
    s.truncate = n[TRUNCATE] != 0;
    s.attention_factor = x[ATTENTION];
    s.mscale = x[MSCALE];
    s.mscale_all_dim = x[MSCALE_ALL];
    s.max_position_embeddings = x[MOST];
    s.seq_len = n[SEQ_LEN];
    s.partial_rotary_factor = x[PARTIAL];
    s.short_factor = (const void *)t->data[SHORT];
    s.long_factor = (const void *)t->data[LONG];
    memcpy(s.mrope_section, n + SECTION, sizeof s.mrope_section);
    s.mrope_layout = (enum posenc_mrope_layout)n[LAYOUT];
    s.xpos_scale_base = x[XPOS];
    s.xpos_centre = x[CENTRE];
    s.values = n[OWN] ? (const void *)t->data[VALUES] : NULL;
    return s;
}

/* From dim on, whole words, up to 8 times what is known where that is zero. */
static bool is_taken(const struct trial *t)
{
    const size_t size = (size_t)t->whole[SIZE], known = sizeof(struct posenc_freqs_spec);
    return size >= offsetof(struct posenc_freqs_spec, dim) + sizeof(int64_t) &&
           size % sizeof(void *) == 0 && size <= 8 * known &&
           (size <= known || !t->whole[FILLED]);
}

/* As the library has it that knows only `size` bytes. */
static struct posenc_freqs_spec read_spec(const struct trial *t)
{
    struct posenc_freqs_spec s = posenc_freqs_spec_init();
    const struct posenc_freqs_spec all = whole_spec(t);
    const size_t size = (size_t)t->whole[SIZE];
    memcpy(&s, &all, size < sizeof s ? size : sizeof s);
    return s;
}

static wide count_pairs(const struct trial *t, int i)
{
    (void)i;
    return t->whole[DIM] < 1 ? -1 : ((wide)t->whole[DIM] + 1) / 2;
}

static double element_of_spec(struct draws *d, const struct trial *t, int i)
{
    (void)t;
    return (double)(1 + draw_below(d, 64)) / (i == VALUES ? 64.0 : 8.0);
}

/* ---- A valid one ---- */

static void settle_plan(struct draws *d, struct trial *t)
{
    static const unsigned scalings[] = { 10, 8, 7, 1 };
    int64_t *n = t->whole;
    double *x = t->real;
    n[NO_SPEC] = n[NO_FREQS] = n[FILLED] = 0;
    n[SIZE] = (int64_t)sizeof(struct posenc_freqs_spec);
    n[SCALING] = draw_below(d, scalings[n[PROFILE]]);
    n[CONVENTION] = n[PROFILE] == POSENC_GGML_F32 ? 0 : n[CONVENTION];
    n[DIM] = 3 + draw_below(d, 40);
    x[THETA] = 10000.0;
    x[FACTOR] = 1.0 + (double)draw_below(d, 64) / 4.0;
    x[ORIGINAL] = (double)(64 << draw_below(d, 8));
    x[LOW] = 1.0;
    x[HIGH] = (double)(1 + draw_below(d, 8));
    x[FAST] = 32.0;
    x[SLOW] = 1.0;
    x[ATTENTION] = draw_one_in(d, 2) ? 0.0 : 1.5;
    x[FACTOR] = draw_one_in(d, 8) ? 1e6 : x[FACTOR];
    x[MSCALE] = draw_one_in(d, 8) ? (double)FLT_MAX : (double)draw_below(d, 3) / 2.0;
    x[MSCALE_ALL] = (double)draw_below(d, 3) / 2.0;
    x[MOST] = 4096.0;
    n[SEQ_LEN] = draw_below(d, 3) * 4000;
    x[PARTIAL] =
        draw_one_in(d, 4) ? 2.0 / (double)n[DIM] : 1.0 - (double)draw_below(d, 3) / 8.0;
    n[SECTION] = n[SECTION + 1] = n[SECTION + 2] = n[OWN] = 0;
    x[XPOS] = 0.0;
    if (draw_one_in(d, 3)) {
        n[DIM] += n[DIM] % 2;
        n[SECTION + 1] = draw_below(d, n[DIM] / 2);
        n[SECTION] = n[DIM] / 2 - n[SECTION + 1];
        n[LAYOUT] = n[SCALING] || n[CONVENTION] || n[PROFILE] == POSENC_GGML_F32
                        ? draw_below(d, 2)
                        : n[LAYOUT];
    } else if (n[PROFILE] == POSENC_EXACT && draw_one_in(d, 3)) {
        n[DIM] += n[DIM] % 2;
        x[XPOS] = 512.0;
    }
    n[OWN] = n[SCALING] == 0 && n[PROFILE] != POSENC_GGML_F32 &&
             !(n[SECTION] && n[LAYOUT] >= POSENC_MROPE_RESTARTED) && draw_one_in(d, 4);
}

/* ---- What the header says of it ---- */

static void within(struct verdict *v, double value, double least, double most)
{
    due(v, !(value >= least && value <= most), STATUS(PARAMETER));
}

static void judge_yarn(struct verdict *v, const struct posenc_freqs_spec *s)
{
    within(v, s->original_max_position_embeddings, 1.0, 0x1p40);
    within(v, s->beta_slow, 0x1p-40, 0x1p40);
    within(v, s->beta_fast, s->beta_slow, 0x1p40);
    within(v, s->mscale, 0.0, (double)FLT_MAX);
    within(v, s->mscale_all_dim, 0.0, (double)FLT_MAX);
    due(v, s->rope_theta <= 1.0, STATUS(THETA));
}

static void judge_scaling(struct verdict *v, const struct trial *t,
                          const struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_NONE)
        within(v, s->factor, 1.0, 1e6);
    switch (s->scaling) {
    case POSENC_SCALING_LLAMA3:
        within(v, s->original_max_position_embeddings, 1.0, 0x1p40);
        within(v, s->low_freq_factor, 0x1p-40, 0x1p40);
        within(v, s->high_freq_factor, s->low_freq_factor, 0x1p40);
        break;
    case POSENC_SCALING_YARN:
    case POSENC_SCALING_RESONANCE_YARN:
        judge_yarn(v, s);
        break;
    case POSENC_SCALING_DYNAMIC:
        within(v, s->max_position_embeddings, 1.0, 0x1p40);
        within(v, (double)s->seq_len, 0.0, 0x1p40);
        due(v, s->dim < 3, STATUS(SHAPE));
        break;
    case POSENC_SCALING_NTK:
        due(v, s->dim < 3, STATUS(SHAPE));
        break;
    case POSENC_SCALING_LONGROPE:
        within(v, s->original_max_position_embeddings, 2.0, 0x1p40);
        within(v, (double)s->seq_len, 0.0, 0x1p40);
        due(v, !s->short_factor || !s->long_factor, STATUS(ARGUMENT));
        due(v,
            (s->short_factor && !all_between(t, SHORT, 0x1p-10, 0x1p40)) ||
                (s->long_factor && !all_between(t, LONG, 0x1p-10, 0x1p40)),
            STATUS(PARAMETER));
        break;
    case POSENC_SCALING_PROPORTIONAL:
        due(v,
            !(s->partial_rotary_factor <= 1.0 &&
              floor(s->partial_rotary_factor * (double)s->dim / 2.0) >= 1.0),
            STATUS(PARAMETER));
        break;
    case POSENC_SCALING_RESONANCE:
        due(v, s->rope_theta < 1.0, STATUS(THETA));
        break;
    default:
        break;
    }
}

static void judge_sections(struct verdict *v, const struct posenc_freqs_spec *s)
{
    const int64_t *n = s->mrope_section;
    const bool any = n[0] || n[1] || n[2], restarts = s->mrope_layout >= POSENC_MROPE_RESTARTED;
    due(v, n[0] < 0 || n[1] < 0 || n[2] < 0, STATUS(PARAMETER));
    due(v, (!n[0] && (n[1] || n[2])) || (!n[1] && n[2]), STATUS(PARAMETER));
    due(v, any && (s->dim % 2 || (wide)n[0] + n[1] + n[2] != s->dim / 2), STATUS(PARAMETER));
    due(v, any && (unsigned)s->mrope_layout > POSENC_MROPE_ALTERNATING, STATUS(ARGUMENT));
    due(v,
        any && restarts &&
            (s->scaling || s->convention || s->values || s->profile == POSENC_GGML_F32),
        STATUS(ARGUMENT));
}

static void judge_xpos(struct verdict *v, const struct posenc_freqs_spec *s)
{
    if (s->xpos_scale_base == 0.0)
        return;
    within(v, s->xpos_scale_base, 1.0, 0x1p40);
    within(v, s->xpos_centre, -0x1p40, 0x1p40);
    due(v, s->profile != POSENC_EXACT || s->mrope_section[1] != 0, STATUS(ARGUMENT));
    due(v, s->dim % 2 != 0, STATUS(SHAPE));
}

static void judge_theta(struct verdict *v, const struct posenc_freqs_spec *s)
{
    const double theta = s->rope_theta;
    const int last = s->profile == POSENC_EXACT      ? POSENC_SCALING_RESONANCE_YARN
                     : s->profile == POSENC_HF_F32   ? POSENC_SCALING_PROPORTIONAL
                     : s->profile == POSENC_GGML_F32 ? POSENC_SCALING_LONGROPE
                                                     : POSENC_SCALING_NONE;
    const bool stretched =
        s->scaling == POSENC_SCALING_DYNAMIC || s->scaling == POSENC_SCALING_NTK;
    due(v, !(theta > 0.0 && theta <= DBL_MAX), STATUS(THETA));
    due(v,
        s->profile != POSENC_EXACT && !(theta >= (double)FLT_MIN && theta <= (double)FLT_MAX),
        STATUS(THETA));
    due(v, (int)s->scaling > last, STATUS(ARGUMENT));
    due(v, s->profile == POSENC_GGML_F32 && s->convention != 0, STATUS(ARGUMENT));
    /* Frequencies of no use: which they are, the view says of what is accepted. */
    v->may |= theta < 0x1p-10 || theta > 0x1p20 || stretched ? STATUS(THETA) : 0u;
}

static struct verdict judge_plan(const struct trial *t)
{
    struct verdict v = { 0, 0 };
    const struct posenc_freqs_spec s = read_spec(t);
    due(&v, t->whole[NO_SPEC] || t->whole[NO_FREQS] || !is_taken(t), STATUS(ARGUMENT));
    if (v.must)
        return v;
    due(&v,
        (unsigned)s.profile > POSENC_TORCH_EXP_F32 ||
            (unsigned)s.convention > POSENC_ENDPOINT ||
            (unsigned)s.scaling > POSENC_SCALING_RESONANCE_YARN,
        STATUS(ARGUMENT));
    due(&v, s.dim < 1 || s.dim > 65536, STATUS(SHAPE));
    within(&v, s.attention_factor, 0.0, (double)FLT_MAX);
    judge_sections(&v, &s);
    judge_xpos(&v, &s);
    if (s.values) {
        due(&v, s.scaling || s.profile == POSENC_GGML_F32, STATUS(ARGUMENT));
        due(&v, !all_between(t, VALUES, 0.0, 65536.0), STATUS(PARAMETER));
    } else {
        judge_theta(&v, &s);
        judge_scaling(&v, t, &s);
    }
    return v;
}

/* ---- The call ---- */

/* The spec ends where its size says that it does, at a page that faults. */
static enum posenc_status call_plan(struct trial *t, struct posenc_error *error)
{
    enum { ROOM = 1 << 15 };
    static char *page;
    const struct posenc_freqs_spec s = whole_spec(t);
    const size_t least = sizeof s.size, most = 8 * sizeof s;
    const size_t bytes = s.size > most ? sizeof s : s.size < least ? least : s.size;
    if (!page) {
        page = mmap(NULL, 2 * (size_t)ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED || mprotect(page, ROOM, PROT_READ | PROT_WRITE) != 0)
            return POSENC_ERR_MEMORY;
    }
    char *at = page + ROOM - (bytes + 7) / 8 * 8;
    memset(at, t->whole[FILLED] ? 0x40 : 0, bytes);
    memcpy(at, &s, bytes < sizeof s ? bytes : sizeof s);
    return posenc_freqs_create(
        t->whole[NO_SPEC] ? NULL : (const void *)at,
        t->whole[NO_FREQS] ? NULL : (struct posenc_freqs **)(void *)&t->made, error);
}

/* ---- What it made ---- */

static int axis_of(const struct posenc_freqs_spec *s, int64_t i)
{
    const int64_t *n = s->mrope_section;
    if (s->mrope_layout == POSENC_MROPE_INTERLEAVED)
        return i < 3 * n[i % 3] ? (int)(i % 3) : 0;
    for (int64_t round = 0; n[0] && s->mrope_layout == POSENC_MROPE_ALTERNATING; round++)
        for (int axis = 0; axis < 3; axis++)
            if (n[axis] > round && i-- == 0)
                return axis;
    return i < n[0] ? 0 : i < n[0] + n[1] ? 1 : 2;
}

/* Of the scalings whose formula is one line; else NaN. */
static double omega_of(const struct trial *t, const struct posenc_freqs_spec *s, int64_t i)
{
    const double n = (double)((s->dim + 1) / 2), dim = (double)s->dim;
    const bool restarts = s->mrope_section[0] && s->mrope_layout >= POSENC_MROPE_RESTARTED;
    const double power = s->convention
                             ? (s->dim / 2 > 1 ? (double)i / (dim / 2.0 - 1.0) : (double)i)
                             : 2.0 * (double)i / dim;
    const double plain = pow(s->rope_theta, -power);
    const bool beyond = (double)s->seq_len > s->original_max_position_embeddings;
    (void)n;
    if (s->values)
        return element_of(t, VALUES, i);
    if (restarts || (s->convention && s->dim % 2))
        return (double)NAN;
    switch (s->scaling) {
    case POSENC_SCALING_NONE:
        return plain;
    case POSENC_SCALING_LINEAR:
        return plain / s->factor;
    case POSENC_SCALING_LONGROPE:
        return plain / element_of(t, beyond ? LONG : SHORT, i);
    case POSENC_SCALING_PROPORTIONAL:
        return (double)i < floor(s->partial_rotary_factor * dim / 2.0) ? plain / s->factor
                                                                       : 0.0;
    default:
        return (double)NAN;
    }
}

static bool pair_is_right(const struct trial *t, const struct posenc_freqs_spec *s,
                          const struct posenc_freqs_view *view, int64_t i,
                          char complaint[MOST_TEXT])
{
    const double omega = view->omega[i], wanted = omega_of(t, s, i);
    const double turn =
        ((double)view->turn_hi[i] + (double)view->turn_lo[i] * 0x1p-64) * 0x1p-64;
    const double turns = omega / (2.0 * acos(-1.0)),
                 apart = fabs(turn - (turns - floor(turns)));
    if (!(omega >= 0.0 && omega <= 0x1.00001p16) ||
        (omega != 0.0 && omega < 0x1p-81 && !s->values))
        return complain(complaint, "frequency %lld is %g", (long long)i, omega);
    if (fabs(omega - wanted) > 1e-11 * wanted)
        return complain(complaint, "frequency %lld is %.17g, by the header %.17g", (long long)i,
                        omega, wanted);
    if (!(apart < 1e-10 || apart > 1.0 - 1e-10))
        return complain(complaint, "pair %lld turns %.17g, frequency %.17g", (long long)i, turn,
                        omega);
    if (!(fabs((double)view->omega_f32[i] - omega) <= 1e-2 * omega + 0x1p-149))
        return complain(complaint, "frequency %lld as f32 is %g, else %g", (long long)i,
                        (double)view->omega_f32[i], omega);
    if (view->axis && view->axis[i] != axis_of(s, i))
        return complain(complaint, "pair %lld turns with axis %d", (long long)i, view->axis[i]);
    return true;
}

static bool view_is_right(const struct trial *t, char complaint[MOST_TEXT])
{
    const struct posenc_freqs_spec s = read_spec(t);
    const struct posenc_freqs_view view = posenc_freqs_view(t->made);
    const int axes = s.mrope_section[1] ? s.mrope_section[2] ? 3 : 2 : 1;
    if (view.profile != s.profile || view.dim != s.dim || view.n_pairs != (s.dim + 1) / 2 ||
        view.n_axes != axes || !view.axis != (axes == 1))
        return complain(complaint, "the view is of another plan");
    if (!(view.attention_factor >= 0.0 && view.attention_factor <= (double)FLT_MAX) ||
        (s.attention_factor != 0.0 && view.attention_factor != s.attention_factor) ||
        (s.attention_factor == 0.0 && !s.scaling && view.attention_factor != 1.0))
        return complain(complaint, "the attention factor is %g", view.attention_factor);
    for (int64_t i = 0; i < view.n_pairs; i++)
        if (!pair_is_right(t, &s, &view, i, complaint))
            return false;
    return true;
}

static bool right_plan(const struct trial *t, char complaint[MOST_TEXT])
{
    const bool right = t->made && view_is_right(t, complaint);
    if (!t->made)
        complain(complaint, "accepted, and no plan made");
    posenc_freqs_destroy(t->made);
    return right;
}

/* ---- The list ---- */

#define FLAG(name)                                                                             \
    {                                                                                          \
        name, KIND_FLAG, 0, 1, false                                                           \
    }
#define WHOLE(name, least, most)                                                               \
    {                                                                                          \
        name, KIND_WHOLE, least, most, false                                                   \
    }
#define REAL(name, least, most)                                                                \
    {                                                                                          \
        name, KIND_REAL, least, most, false                                                    \
    }
#define PAIRS(name)                                                                            \
    {                                                                                          \
        name, KIND_DOUBLES, 0, 0, false                                                        \
    }

const struct offer offers_plans[] = {
    { .name = "freqs_create",
      .of = { FLAG("no spec"),
              FLAG("no freqs"),
              WHOLE("size", 0, sizeof(struct posenc_freqs_spec)),
              FLAG("filled"),
              WHOLE("profile", 0, 3),
              WHOLE("convention", 0, 1),
              WHOLE("scaling", 0, 9),
              WHOLE("dim", 1, 65536),
              REAL("rope_theta", 0x1p-80, 0x1p80),
              REAL("factor", 1, 1e6),
              REAL("original_max_position_embeddings", 1, 0x1p40),
              REAL("low_freq_factor", 0x1p-40, 0x1p40),
              REAL("high_freq_factor", 0x1p-40, 0x1p40),
              REAL("beta_fast", 0x1p-40, 0x1p40),
              REAL("beta_slow", 0x1p-40, 0x1p40),
              FLAG("truncate"),
              REAL("attention_factor", 0, (double)FLT_MAX),
              REAL("mscale", 0, (double)FLT_MAX),
              REAL("mscale_all_dim", 0, (double)FLT_MAX),
              REAL("max_position_embeddings", 1, 0x1p40),
              WHOLE("seq_len", 0, 0x1p40),
              REAL("partial_rotary_factor", 0, 1),
              PAIRS("short_factor"),
              PAIRS("long_factor"),
              WHOLE("mrope_section[0]", 0, 32768),
              WHOLE("mrope_section[1]", 0, 32768),
              WHOLE("mrope_section[2]", 0, 32768),
              WHOLE("mrope_layout", 0, 4),
              REAL("xpos_scale_base", 0, 0x1p40),
              REAL("xpos_centre", -0x1p40, 0x1p40),
              FLAG("own"),
              PAIRS("values") },
      .tells = true,
      .settle = settle_plan,
      .count = count_pairs,
      .element = element_of_spec,
      .judge = judge_plan,
      .call = call_plan,
      .right = right_plan },
    { .name = NULL }
};
