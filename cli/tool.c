/*
 * Which program this is, from what the build wrote into it (see tool.h).
 */
#define _GNU_SOURCE
#include "tool.h"

#include "commit.h"

#include <posenc.h>

#include <stdio.h>
#include <string.h>

#ifdef __linux__
#include <elf.h>
#include <link.h>

/* The linker's note of what it linked (-Wl,--build-id): type 3 of GNU. */
static uint64_t add_note(uint64_t hash, const char *note, size_t size)
{
    const size_t word = 4, head = 3 * word;
    while (size >= head) {
        uint32_t field[3]; /* bytes of the name, bytes of the note, its type */
        memcpy(field, note, head);
        const size_t name = (field[0] + word - 1) / word * word,
                     body = (field[1] + word - 1) / word * word;
        if (head + name + body > size)
            break;
        for (size_t i = 0; field[2] == NT_GNU_BUILD_ID && i < field[1]; i++)
            hash = (hash ^ (unsigned char)note[head + name + i]) * 0x100000001b3u;
        note += head + name + body;
        size -= head + name + body;
    }
    return hash;
}

/* Of each object of this process but the kernel's own, which has no path. */
static int add_object(struct dl_phdr_info *object, size_t size, void *user)
{
    uint64_t *hash = user;
    (void)size;
    if (object->dlpi_name[0] != '\0' && !strchr(object->dlpi_name, '/'))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_NOTE)
            *hash = add_note(*hash, (const char *)(object->dlpi_addr + part->p_vaddr),
                             part->p_memsz);
    }
    return 0;
}

static uint64_t code_of_process(void)
{
    const uint64_t nothing = 0xcbf29ce484222325u;
    uint64_t hash = nothing;
    dl_iterate_phdr(add_object, &hash);
    return hash == nothing ? 0 : hash;
}
#else
static uint64_t code_of_process(void) { return 0; }
#endif

json_t *tool_record(void)
{
    static const char mark[] = "-dirty";
    char commit[96] = POSENC_COMMIT, code[24];
    const size_t n = strlen(commit);
    const bool dirty = n > strlen(mark) && strcmp(commit + n - strlen(mark), mark) == 0;
    const uint64_t number = code_of_process();
    json_t *tool = json_pack("{s:s}", "version", posenc_version());
    if (dirty)
        commit[n - strlen(mark)] = '\0';
    if (tool && n > 0) {
        json_object_set_new(tool, "commit", json_string(commit));
        json_object_set_new(tool, "dirty", json_boolean(dirty));
    }
    snprintf(code, sizeof code, "%016llx", (unsigned long long)number);
    if (tool && number != 0)
        json_object_set_new(tool, "code", json_string(code));
    return tool;
}
