/*
 * Writes to static variables: see statics.h.
 *
 * An object's writable segment begins with what the dynamic linker writes: tables of addresses,
 * of which those of functions may be filled when each is first called.  What lies behind these
 * belongs to the source.
 */
#define _GNU_SOURCE
#include "statics.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WRITTEN_BY "the sanitizer of this build writes to static memory"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
    __has_feature(memory_sanitizer)
#define WRITTEN_BY "the sanitizer of this build writes to static memory"
#endif
#endif
#if defined(POSENC_COUNTS_LINES)
#define WRITTEN_BY "the counters of coverage lie in static memory"
#endif
#if !defined(WRITTEN_BY) && !defined(__linux__)
#define WRITTEN_BY "the segments of a program are known on Linux alone"
#endif

#if defined(WRITTEN_BY)

const char *statics_unseen(void) { return WRITTEN_BY; }

bool statics_of(void (*function)(void), struct statics *statics)
{
    (void)function, (void)statics;
    return false;
}
void statics_watch(struct statics *statics) { (void)statics; }
void statics_leave(struct statics *statics) { (void)statics; }
bool statics_mend(void *statics, const char *address)
{
    (void)statics, (void)address;
    return false;
}

#else

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

/* The C library's variables are among those of a program that is linked with all it takes. */
static bool holds_libc(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP)
            return false;
    return !*info->dlpi_name;
}

/* The first object is the program. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(bool *)user = holds_libc(info);
    return 1;
}

const char *statics_unseen(void)
{
    bool with_libc = false;
    dl_iterate_phdr(look_at_program, &with_libc);
    return with_libc ? "the C library's variables are among those of a program that is linked "
                       "statically"
                     : NULL;
}

struct search {
    uintptr_t function;
    struct statics *found;
};

/* The end of the table that is filled when functions are first called; 0: there is none. */
static uintptr_t end_of_table(const ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
    enum { RESERVED = 3 }; /* words at the table's beginning */
    uintptr_t table = 0;
    size_t bytes = 0, entry = sizeof(ElfW(Rela));
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_PLTGOT)
            table =
                dynamic->d_un.d_ptr < base ? base + dynamic->d_un.d_ptr : dynamic->d_un.d_ptr;
        else if (dynamic->d_tag == DT_PLTRELSZ)
            bytes = dynamic->d_un.d_val;
        else if (dynamic->d_tag == DT_PLTREL && dynamic->d_un.d_val == DT_REL)
            entry = sizeof(ElfW(Rel));
    }
    return table ? table + (RESERVED + bytes / entry) * sizeof(void *) : 0;
}

static bool holds_function(const struct dl_phdr_info *info, uintptr_t function)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && function >= begin && function - begin < part->p_memsz)
            return true;
    }
    return false;
}

static uintptr_t larger(uintptr_t a, uintptr_t b) { return a > b ? a : b; }

static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    struct search *search = user;
    struct statics *s = search->found;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = info->dlpi_addr;
    uintptr_t sealed = 0, table = 0;
    if (!holds_function(info, search->function))
        return 0;
    if (holds_libc(info))
        return 1;
    s->object = info->dlpi_name;
    s->base = (const char *)base; // NOLINT(performance-no-int-to-ptr)
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = base + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO)
            sealed = (begin + part->p_memsz) & -page;
        else if (part->p_type == PT_DYNAMIC)
            table = end_of_table(base,
                                 (const ElfW(Dyn) *)begin); // NOLINT(performance-no-int-to-ptr)
    }
    for (int i = 0; i < info->dlpi_phnum && s->n < MOST_SEGMENTS; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uintptr_t begin = base + part->p_vaddr, end = begin + part->p_memsz;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        const uintptr_t after = sealed >= begin && sealed <= end ? sealed : begin,
                        own = table >= begin && table <= end ? larger(table, after) : after;
        // NOLINTBEGIN(performance-no-int-to-ptr)
        struct segment segment = { (char *)(after & -page), (char *)((end + page - 1) & -page),
                                   (const char *)own };
        // NOLINTEND(performance-no-int-to-ptr)
        if (segment.begin < segment.end)
            s->segments[s->n++] = segment;
    }
    return 1;
}

bool statics_of(void (*function)(void), struct statics *statics)
{
    struct search search = { (uintptr_t)function, statics };
    *statics = (struct statics){ .n = 0 };
    return dl_iterate_phdr(look, &search) != 0 && statics->n > 0;
}

static void protect(const struct statics *s, int access)
{
    for (int i = 0; i < s->n; i++)
        mprotect(s->segments[i].begin, (size_t)(s->segments[i].end - s->segments[i].begin),
                 access);
}

void statics_watch(struct statics *s) { protect(s, PROT_READ); }
void statics_leave(struct statics *s) { protect(s, PROT_READ | PROT_WRITE); }

bool statics_mend(void *user, const char *address)
{
    struct statics *s = user;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < s->n; i++) {
        const struct segment *segment = &s->segments[i];
        if (address < segment->begin || address >= segment->end)
            continue;
        if (address >= segment->watched && !s->text[0])
            snprintf(s->text, sizeof s->text, "wrote to a static variable, at %#tx of %.80s",
                     address - s->base, *s->object ? s->object : "the program");
        char *first =
            segment->begin + (address - segment->begin) / (ptrdiff_t)page * (ptrdiff_t)page;
        return mprotect(first, page, PROT_READ | PROT_WRITE) == 0;
    }
    return false;
}

#endif
