/* Allocates memory between guard pages, and finds changes by a call (see guard.h). */
#define _GNU_SOURCE
#include "guard.h"
#include "arena.h"
#include "signature.h"
#include "storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A write past the red zone faults on the guard page if the buffer lies at the other end. */
enum {
    SLOTS = 4 * LAYOUTS,    /* one for each tensor of a call; others wait with a mapping */
    MOST_WAITING = 1 << 26, /* bytes of the mappings that wait for a buffer of their size */
    RED_ZONE = 1024         /* bytes of the pattern on each side of a buffer */
};

/* Accessible bytes, of elements or of the pattern, and a copy of them from before the call. */
struct region {
    char *from, *to;
    char *copy;
};

/* A mapping [margin][capacity][margin] for one buffer. Only its regions are accessible: the whole capacity, or the pages
 * of rows of a reserved buffer. A mapping of the first kind outlives its buffer, as a small call takes less time than to
 * map memory for its tensors. It stays accessible. */
struct slot {
    char *map;   /* NULL: none */
    bool in_use; /* holds a buffer */
    size_t capacity, margin;
    char *data;
    size_t bytes;
    struct region *regions;
    size_t n, room;
    char *copies;       /* of all regions */
    struct arena arena; /* of regions and copies */
    char role;
    bool sealed; /* read-only */
};

struct guard {
    enum guard_mode mode;
    size_t page;
    unsigned char pattern[RED_ZONE];
    struct slot slots[SLOTS];
};

/* for (EACH_SLOT(s, guard)) visits no slot if guard is NULL. */
#define EACH_SLOT(s, guard)                                                                    \
    struct slot *s = (guard) ? (guard)->slots : NULL;                                          \
    s != NULL &&s < (guard)->slots + SLOTS;                                                    \
    s++
#define EACH_REGION(r, slot)                                                                   \
    struct region *r = (slot)->regions;                                                        \
    r < (slot)->regions + (slot)->n;                                                           \
    r++

struct guard *guard_create(void)
{
    struct guard *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < RED_ZONE; i++)
        g->pattern[i] = (unsigned char)rng_u64(0x6775617264, i);
    return g;
}

static size_t slot_size(const struct slot *s) { return s->capacity + 2 * s->margin; }
static char *slot_start(const struct slot *s) { return s->map + s->margin; }

static bool make_accessible(char *from, const char *to)
{
    return mprotect(from, (size_t)(to - from), PROT_READ | PROT_WRITE) == 0;
}

static void slot_unmap(struct slot *s)
{
    if (s->map)
        pages_release(s->map, slot_size(s));
    arena_free(&s->arena);
    memset(s, 0, sizeof *s);
}

/* Ends the life of a buffer. Keeps its mapping, region and copy if it is wholly accessible and not too much waits. */
static void slot_release(struct guard *g, struct slot *s)
{
    size_t waiting = s->capacity;
    for (EACH_SLOT(other, g))
        waiting += other->map && !other->in_use ? other->capacity : 0;
    s->in_use = false;
    if (s->margin != g->page || waiting > MOST_WAITING ||
        (s->sealed && !make_accessible(slot_start(s), slot_start(s) + s->capacity)))
        slot_unmap(s);
    s->sealed = false;
}

void guard_destroy(struct guard *g)
{
    for (EACH_SLOT(s, g))
        slot_unmap(s);
    free(g);
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static bool add_region(struct slot *s, char *from, char *to)
{
    struct region *grown = arena_grow(&s->arena, s->regions, s->n, &s->room, sizeof *grown);
    if (!grown)
        return false;
    s->regions = grown;
    s->regions[s->n++] = (struct region){ .from = from, .to = to };
    return true;
}

/* Fills memory with the pattern. */
static void fill_pattern(const struct guard *g, char *from, const char *to)
{
    for (char *at = from; at < to; at += RED_ZONE)
        memcpy(at, g->pattern, smaller((size_t)(to - at), RED_ZONE));
}

/* Returns a slot for a buffer: one that waits with a mapping of this size, else one without a mapping, else any that
 * waits, whose mapping is released. NULL: all are in use. */
static struct slot *find_slot(struct guard *g, size_t capacity, size_t margin)
{
    struct slot *best = NULL;
    for (EACH_SLOT(s, g)) {
        if (s->in_use)
            continue;
        if (s->map && s->capacity == capacity && s->margin == margin)
            return s;
        if (!best || (best->map && !s->map))
            best = s;
    }
    if (best)
        slot_unmap(best);
    return best;
}

/* Takes a slot, and maps it unless it has a mapping. Places the buffer flush with an end, or at its offset from a
 * 64-byte boundary. Room for the pattern is left at the other end. */
static struct slot *slot_take(struct guard *g, size_t bytes, size_t margin,
                              int64_t offset_bytes, char role)
{
    const size_t offset = (size_t)offset_bytes & 63,
                 capacity = (bytes + 64 + RED_ZONE + g->page - 1) / g->page * g->page;
    struct slot *s = find_slot(g, capacity, margin);
    if (!s)
        return NULL;
    if (!s->map) {
        s->map = pages_reserve_inaccessible(capacity + 2 * margin);
        s->capacity = capacity;
        s->margin = margin;
        if (!s->map)
            return NULL;
    }
    s->in_use = true;
    s->bytes = bytes;
    s->role = role;
    s->data =
        g->mode == GUARD_START ? slot_start(s) + offset : slot_start(s) + capacity - bytes;
    if (g->mode == GUARD_END && offset)
        s->data -= ((uintptr_t)s->data - offset) & 63;
    return s;
}

static void *guard_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct guard *g = user;
    struct slot *s =
        bytes > SIZE_MAX / 4 ? NULL : slot_take(g, bytes, g->page, offset_bytes, role);
    if (!s)
        return NULL;
    char *from = slot_start(s), *to = from + s->capacity;
    if (s->n == 0 && (!make_accessible(from, to) || !add_region(s, from, to))) {
        slot_unmap(s);
        return NULL;
    }
    fill_pattern(g, from, to);
    return s->data;
}

/* Bytes that a signed 32-bit index of 4-byte elements can reach, in either direction. */
static const uint64_t index_reach = UINT64_C(8) << 30;

static void *guard_reserve(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    if (sizeof(size_t) < sizeof index_reach || bytes > SIZE_MAX / 4)
        return NULL;
    struct slot *s = slot_take(user, bytes, (size_t)index_reach, offset_bytes, role);
    return s ? s->data : NULL;
}

/* Returns the region that holds a byte, or NULL. */
static struct region *region_of(const struct slot *s, const char *at)
{
    for (EACH_REGION(r, s))
        if (at >= r->from && at < r->to)
            return r;
    return NULL;
}

/* Makes a page accessible, and merges it with adjacent regions. */
static bool add_page(const struct guard *g, struct slot *s, char *page)
{
    if (!make_accessible(page, page + g->page) || !add_region(s, page, page + g->page))
        return false;
    fill_pattern(g, page, page + g->page);
    struct region all = s->regions[--s->n];
    for (struct region *r = s->regions; r < s->regions + s->n;)
        if (r->to == all.from || r->from == all.to) {
            all.from = r->to == all.from ? r->from : all.from;
            all.to = r->from == all.to ? r->to : all.to;
            *r = s->regions[--s->n];
        } else {
            r++;
        }
    return add_region(s, all.from, all.to);
}

static bool guard_use(void *user, void *part, size_t bytes)
{
    struct guard *g = user;
    char *row = part, *first = row - (uintptr_t)row % g->page;
    for (EACH_SLOT(s, g))
        if (s->in_use && row >= s->data && row < s->data + s->bytes)
            for (char *page = first; page < row + bytes; page += g->page)
                if (!region_of(s, page) && !add_page(g, s, page))
                    return false;
    return true;
}

/* Makes inputs read-only. A reserved one stays writable, as each of its rows would take a system call; there, a write
 * that changes a value shows as damage. */
static void guard_seal(void *user)
{
    struct guard *g = user;
    for (EACH_SLOT(s, g))
        s->sealed = s->in_use && s->role == 'i' && s->margin == g->page &&
                    mprotect(slot_start(s), s->capacity, PROT_READ) == 0;
}

static void guard_free(void *user, void *data)
{
    struct guard *g = user;
    for (EACH_SLOT(s, g))
        if (s->in_use && s->data == data)
            slot_release(g, s);
}

struct tensor_allocator guard_memory(struct guard *g, enum guard_mode mode)
{
    g->mode = mode;
    return (struct tensor_allocator){ .get = guard_get,
                                      .reserve = guard_reserve,
                                      .use = guard_use,
                                      .seal = guard_seal,
                                      .free = guard_free,
                                      .user = g };
}

/* ---- Descriptions of addresses ---- */

/* Returns true if a tensor lies in the slot. With negative strides, `data` is not the lowest address. */
static bool slot_holds(const struct slot *s, const void *data)
{
    const char *at = data;
    return at == s->data || (at > s->data && at < s->data + s->bytes);
}

static const char *slot_name(const struct slot *s, const struct call *c)
{
    for (EACH_TENSOR(spec, signature_of(c->problem.kernel)))
        if (slot_holds(s, call_data(c, spec)))
            return spec->name;
    return "a buffer";
}

/* Writes, for example, "3 bytes past its end", "4 bytes before its start" or "at byte 8". */
static void describe_address(struct guard_result *result, const struct slot *s,
                             const struct call *c, const char *verb, const char *at)
{
    const char *end = s->data + s->bytes, *name = slot_name(s, c);
    char *text = result->reason;
    const size_t size = sizeof result->reason;
    if (at >= end)
        snprintf(text, size, "%s %s, %td bytes past its end", verb, name, at - end);
    else if (at < s->data)
        snprintf(text, size, "%s %s, %td bytes before its start", verb, name, s->data - at);
    else
        snprintf(text, size, "%s %s at byte %td of %zu", verb, name, at - s->data, s->bytes);
}

void guard_describe_fault(struct guard *g, const struct call *call, const char *signal,
                          struct guard_result *result)
{
    const char *at = result->address;
    char verb[64];
    for (EACH_SLOT(s, g)) {
        if (!s->in_use || at < s->map || at >= s->map + slot_size(s))
            continue;
        const bool inside = at >= s->data && at < s->data + s->bytes;
        const bool between = inside && !region_of(s, at);
        const char *where = between ? " between the rows of" : " at";
        result->input_written = inside && !between && s->sealed;
        snprintf(verb, sizeof verb, "%s%s", signal,
                 result->input_written ? ": wrote to the input" : where);
        describe_address(result, s, call, verb, at);
    }
}

/* ---- Changes by a call ---- */

/* Copies the contents of the regions; returns false if out of memory. */
static bool slot_save(struct slot *s)
{
    size_t bytes = 0;
    for (EACH_REGION(r, s))
        bytes += (size_t)(r->to - r->from);
    char *copy = s->copies = s->copies ? s->copies : arena_get(&s->arena, bytes);
    for (EACH_REGION(r, s)) {
        if (!copy)
            return false;
        r->copy = memcpy(copy, r->from, (size_t)(r->to - r->from));
        copy += r->to - r->from;
    }
    return true;
}

/* Returns the first byte of a region that changed, or NULL. Searches the buffer and the bytes behind it, then those
 * in front of it. */
static const char *find_region_damage(const struct slot *s, const struct region *r)
{
    const size_t n = (size_t)(r->to - r->from);
    const size_t before = s->data > r->from ? (size_t)(s->data - r->from) : 0;
    if (memcmp(r->from, r->copy, n) == 0)
        return NULL;
    size_t i = before;
    while (i < before + n && r->from[i % n] == r->copy[i % n])
        i++;
    return r->from + i % n;
}

/* Returns a byte that changed outside the rows of outputs, or NULL. Copies these rows to the saved bytes first, as
 * they may change. */
static const char *find_slot_damage(const struct slot *s, const struct call *call)
{
    for (int o = 0; o < call->n_outputs; o++) {
        const struct output *out = &call->outputs[o];
        const size_t bytes = (size_t)out->width * storage_size(out->tensor.dtype);
        for (int64_t r = 0; slot_holds(s, out->tensor.data) && bytes && r < out->rows; r++) {
            const char *row = storage_row(&out->tensor, r);
            const struct region *region = region_of(s, row);
            memcpy(region->copy + (row - region->from), row, bytes);
        }
    }
    const char *at = NULL;
    for (EACH_REGION(r, s))
        at = at ? at : find_region_damage(s, r);
    return at;
}

bool guard_save(struct guard *g)
{
    for (EACH_SLOT(s, g))
        if (s->in_use && !slot_save(s))
            return false;
    return true;
}

void guard_find_damage(struct guard *g, const struct call *call, struct guard_result *result)
{
    for (EACH_SLOT(s, g)) {
        const char *at = s->in_use ? find_slot_damage(s, call) : NULL;
        result->overwritten = result->overwritten || at;
        if (at && !result->reason[0])
            describe_address(result, s, call, "wrote outside the rows of", at);
    }
}
