/*
 * Reads the table of symbols of an ELF file (see symbols.h).
 */
#include "symbols.h"

#ifdef __linux__

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of the file, malloc'ed; NULL where it is not there. */
static void *read_part(FILE *file, uint64_t at, uint64_t bytes)
{
    void *part = bytes > 0 && bytes < SIZE_MAX / 2 ? malloc((size_t)bytes) : NULL;
    if (part &&
        (fseek(file, (long)at, SEEK_SET) != 0 || fread(part, (size_t)bytes, 1, file) != 1)) {
        free(part);
        part = NULL;
    }
    return part;
}

static int by_begin(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    if (x->range.begin != y->range.begin)
        return x->range.begin < y->range.begin ? -1 : 1;
    return (x->range.end > y->range.end) - (x->range.end < y->range.end);
}

/* Functions and data that have a size. */
static bool is_taken(const ElfW(Sym) * symbol)
{
    const int type = symbol->st_info & 15;
    return symbol->st_size > 0 && symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_OBJECT);
}

/* Takes the names, of which `bytes` are there. */
static struct symbols take(const ElfW(Sym) * list, size_t n, char *names, size_t bytes)
{
    struct symbols symbols = { 0, malloc((n + 1) * sizeof *symbols.list), names };
    names[bytes - 1] = '\0';
    for (size_t i = 0; i < n && symbols.list; i++)
        if (is_taken(&list[i]) && list[i].st_name < bytes)
            symbols.list[symbols.n++] =
                (struct symbol){ { list[i].st_value, list[i].st_value + list[i].st_size },
                                 names + list[i].st_name };
    if (symbols.list)
        qsort(symbols.list, symbols.n, sizeof *symbols.list, by_begin);
    return symbols;
}

/* The whole table where there is one, else that of what is exported. */
static const ElfW(Shdr) * table_of(const ElfW(Shdr) * sections, size_t n)
{
    const ElfW(Shdr) *found = NULL;
    for (size_t i = 0; i < n; i++)
        if (sections[i].sh_type == SHT_SYMTAB || (sections[i].sh_type == SHT_DYNSYM && !found))
            found = &sections[i];
    return found;
}

static struct symbols read_table(FILE *file, const ElfW(Shdr) * sections, size_t n)
{
    const ElfW(Shdr) *table = table_of(sections, n);
    const ElfW(Shdr) *strings = table && table->sh_link < n ? &sections[table->sh_link] : NULL;
    ElfW(Sym) *list = strings ? read_part(file, table->sh_offset, table->sh_size) : NULL;
    char *names = list ? read_part(file, strings->sh_offset, strings->sh_size) : NULL;
    struct symbols symbols = { 0, NULL, NULL };
    if (names)
        symbols = take(list, (size_t)(table->sh_size / sizeof *list), names,
                       (size_t)strings->sh_size);
    free(list);
    return symbols;
}

struct symbols symbols_read(const char *path)
{
    struct symbols symbols = { 0, NULL, NULL };
    ElfW(Ehdr) header;
    FILE *file = fopen(path, "rb");
    if (file && fread(&header, sizeof header, 1, file) == 1 &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
        header.e_shentsize == sizeof(ElfW(Shdr))) {
        ElfW(Shdr) *sections =
            read_part(file, header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize);
        if (sections)
            symbols = read_table(file, sections, header.e_shnum);
        free(sections);
    }
    if (file)
        fclose(file);
    return symbols;
}

void symbols_free(struct symbols *symbols)
{
    free(symbols->list);
    free(symbols->names);
    *symbols = (struct symbols){ 0, NULL, NULL };
}

const struct symbol *symbols_find(const struct symbols *symbols, uintptr_t address)
{
    enum { LOOKED_AT = 16 };           /* that begin before it: some lie in one another */
    size_t low = 0, high = symbols->n; /* the first that begins behind the address */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (symbols->list[middle].range.begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct symbol *best = NULL;
    for (size_t i = 0; low > 0 && i < LOOKED_AT; i++, low--) {
        const struct symbol *one = &symbols->list[low - 1];
        const size_t size = one->range.end - one->range.begin;
        if (is_within(&one->range, address) &&
            (!best || size > best->range.end - best->range.begin))
            best = one;
    }
    return best;
}

#else

struct symbols symbols_read(const char *path)
{
    (void)path;
    return (struct symbols){ 0, NULL, NULL };
}

void symbols_free(struct symbols *symbols) { (void)symbols; }

const struct symbol *symbols_find(const struct symbols *symbols, uintptr_t address)
{
    (void)symbols;
    (void)address;
    return NULL;
}

#endif
