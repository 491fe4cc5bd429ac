/*
 * Segments of a loaded object, read from the headers at its beginning (see object.h).
 */
#define _GNU_SOURCE
#include "object.h"

#ifdef __linux__

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static bool add(struct object *object, const ElfW(Phdr) * header, enum holds holds)
{
    const uintptr_t begin = object->bias + header->p_vaddr;
    if (object->n == OBJECT_SEGMENTS)
        return false;
    object->segments[object->n++] =
        (struct segment){ { begin, begin + header->p_memsz }, holds };
    return true;
}

static enum holds holds_of(const ElfW(Phdr) * header)
{
    return header->p_flags & PF_X   ? HOLDS_CODE
           : header->p_flags & PF_W ? HOLDS_VARIABLES
                                    : HOLDS_CONSTANTS;
}

bool object_of(uintptr_t code, struct object *object)
{
    Dl_info info;
    *object = (struct object){ .file = "" };
    if (!dladdr((const void *)code, &info) || !info.dli_fbase)
        return false;
    const char *base = info.dli_fbase;
    ElfW(Ehdr) file;
    memcpy(&file, base, sizeof file);
    if (memcmp(file.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)(const void *)(base + file.e_phoff);
    object->file = info.dli_fname;
    object->base = (uintptr_t)base;
    object->bias = file.e_type == ET_DYN ? (uintptr_t)base : 0;
    bool fine = true;
    for (int i = 0; i < file.e_phnum && fine;
         i++) /* before the segments that they are part of */
        if (headers[i].p_type == PT_GNU_RELRO)
            fine = add(object, &headers[i], HOLDS_ADDRESSES);
    for (int i = 0; i < file.e_phnum && fine; i++)
        if (headers[i].p_type == PT_LOAD)
            fine = add(object, &headers[i], holds_of(&headers[i]));
    for (int i = 0; i < file.e_phnum; i++)
        if (headers[i].p_type == PT_DYNAMIC)
            object->dynamic = object->bias + headers[i].p_vaddr;
    const struct segment *text = object_segment(object, code);
    if (!fine || !text || text->holds != HOLDS_CODE)
        return false;
    object->text = text->range;
    return true;
}

/* An address of the loader's table, which some loaders leave as the file has it. */
static uintptr_t table_address(const struct object *object, uintptr_t value)
{
    return value < object->bias ? value + object->bias : value;
}

static const ElfW(Dyn) * table_entry(const struct object *object, int tag)
{
    const ElfW(Dyn) *entry = (const ElfW(Dyn) *)object->dynamic;
    while (entry && entry->d_tag != DT_NULL && entry->d_tag != tag)
        entry++;
    return entry && entry->d_tag == tag ? entry : NULL;
}

/* The index of the symbol of a word, among relocations of which there are so many bytes. */
static size_t symbol_in(const struct object *object, int list_tag, int bytes_tag,
                        uintptr_t word)
{
    const ElfW(Dyn) *list = table_entry(object, list_tag),
                    *bytes = table_entry(object, bytes_tag);
    if (!list || !bytes)
        return 0;
    const ElfW(Rela) *relocations = (const ElfW(Rela) *)table_address(object, list->d_un.d_ptr);
    for (size_t i = 0; i < bytes->d_un.d_val / sizeof *relocations; i++)
        if (object->bias + relocations[i].r_offset == word)
            return (size_t)(relocations[i].r_info >> 32);
    return 0;
}

const char *object_slot(const struct object *object, uintptr_t word)
{
    const ElfW(Dyn) *symbols = table_entry(object, DT_SYMTAB),
                    *names = table_entry(object, DT_STRTAB);
    size_t i = symbol_in(object, DT_JMPREL, DT_PLTRELSZ, word);
    i = i ? i : symbol_in(object, DT_RELA, DT_RELASZ, word);
    if (!i || !symbols || !names)
        return NULL;
    const ElfW(Sym) *list = (const ElfW(Sym) *)table_address(object, symbols->d_un.d_ptr);
    return list[i].st_shndx == SHN_UNDEF
               ? (const char *)table_address(object, names->d_un.d_ptr) + list[i].st_name
               : NULL;
}

#else

const char *object_slot(const struct object *object, uintptr_t word)
{
    (void)object;
    (void)word;
    return NULL;
}

bool object_of(uintptr_t code, struct object *object)
{
    (void)code;
    *object = (struct object){ .file = "" };
    return false;
}

#endif

const struct segment *object_segment(const struct object *object, uintptr_t address)
{
    for (size_t i = 0; i < object->n; i++)
        if (is_within(&object->segments[i].range, address))
            return &object->segments[i];
    return NULL;
}
