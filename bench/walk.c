/*
 * Follows the flow of control through an object (see walk.h).
 */
#define _GNU_SOURCE
#include "walk.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists ---- */

__attribute__((format(printf, 2, 3))) static bool fail(struct walk *walk, const char *format,
                                                       ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!walk->failed)
        vsnprintf(walk->why, sizeof walk->why, format, arguments);
    va_end(arguments);
    walk->failed = true;
    return false;
}

static uintptr_t in_file(const struct walk *walk, uintptr_t at)
{
    return at - walk->object.bias;
}

/* A list with room for one more; where there is none, as it was. */
static void *grow(struct walk *walk, void *list, size_t n, size_t *most, size_t item)
{
    const size_t more = *most ? 2 * *most : 256;
    void *grown = n < *most ? list : realloc(list, more * item);
    if (grown && n == *most)
        *most = more;
    if (!grown)
        fail(walk, "no memory");
    return grown ? grown : list;
}

static void add_pending(struct walk *walk, uintptr_t at)
{
    walk->pending =
        grow(walk, walk->pending, walk->n_pending, &walk->most_pending, sizeof *walk->pending);
    if (!walk->failed) {
        walk->pending[walk->n_pending++] = at;
        walk->met[at - walk->object.text.begin] = true;
    }
}

static void add_line(struct walk *walk, struct line line)
{
    walk->lines =
        grow(walk, walk->lines, walk->n_lines, &walk->most_lines, sizeof *walk->lines);
    if (!walk->failed)
        walk->lines[walk->n_lines++] = line;
}

/* ---- Code ---- */

bool walk_decode(const struct walk *walk, uintptr_t at, struct decoded *decoded)
{
    const struct range *text = &walk->object.text;
    return is_within(text, at) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&walk->decoder, (const void *)at, text->end - at,
                                               &decoded->instruction, decoded->operands));
}

/* 1 + the line of the instruction at an address. */
static uint32_t number_at(const struct walk *walk, uintptr_t at)
{
    return is_within(&walk->object.text, at) ? walk->number[at - walk->object.text.begin] : 0;
}

uint32_t walk_rank(const struct walk *walk, uintptr_t at)
{
    const uint32_t number = number_at(walk, at);
    return number ? walk->lines[number - 1].rank : 0;
}

/* What stands before the head of a loop, or another place that jumps lead to, so that it begins at a
 * multiple of 8 or more.  A NOP anywhere else is an instruction like others, and takes its time. */
static void rank_lines(struct walk *walk)
{
    enum { LEAST_ALIGNED = 8 };
    uint32_t rank = 0;
    for (size_t i = walk->n_lines; i-- > 0;) {
        struct line *line = &walk->lines[i];
        const uintptr_t next = line->at + line->bytes;
        const bool follows = i + 1 < walk->n_lines && line[1].at == next;
        if (line->kind == LINE_NOP && follows)
            line->aligns =
                line[1].kind == LINE_NOP
                    ? line[1].aligns
                    : next % LEAST_ALIGNED == 0 && walk->met[next - walk->object.text.begin];
    }
    for (size_t i = 0; i < walk->n_lines; i++) {
        walk->lines[i].rank = rank + 1;
        rank += !walk->lines[i].aligns;
    }
}

uintptr_t walk_word(uintptr_t at)
{
    uintptr_t word;
    memcpy(&word, (const void *)at, sizeof word);
    return word;
}

bool walk_name(const struct walk *walk, uintptr_t at, char name[WALK_NAME])
{
    const char *asked = object_slot(&walk->object, at);
    const uintptr_t address = walk_word(at);
    Dl_info info;
    if (asked) {
        snprintf(name, WALK_NAME, "%s", asked);
        return true;
    }
    if (address == 0 || object_segment(&walk->object, address) ||
        !dladdr((const void *)address, &info))
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    if (info.dli_sname && info.dli_saddr == (const void *)address)
        snprintf(name, WALK_NAME, "%s", info.dli_sname);
    else
        snprintf(name, WALK_NAME, "%.80s+%" PRIxPTR, slash ? slash + 1 : info.dli_fname,
                 address - (uintptr_t)info.dli_fbase);
    return true;
}

/* ---- Data ---- */

size_t walk_datum(const struct walk *walk, uintptr_t address)
{
    for (size_t i = 0; i < walk->n_data; i++)
        if (is_within(&walk->data[i].range, address))
            return i + 1;
    return 0;
}

/* Bytes of the string at an address, its end included; 0 where there is none. */
static size_t string_at(const struct segment *segment, uintptr_t at)
{
    enum { LONGEST = 1024 };
    const char *text = (const char *)at;
    size_t n = 0;
    while (at + n < segment->range.end && n < LONGEST &&
           ((text[n] >= ' ' && text[n] <= '~') || text[n] == '\n' || text[n] == '\t'))
        n++;
    return n > 0 && at + n < segment->range.end && text[n] == '\0' ? n + 1 : 0;
}

/* What an address of data lies in: by the symbols, else a string, or a variable. */
static void add_datum(struct walk *walk, uintptr_t address)
{
    const struct segment *segment = object_segment(&walk->object, address);
    const struct symbol *symbol = symbols_find(&walk->symbols, in_file(walk, address));
    struct datum datum = { { address, address + 1 }, segment->holds, "", false };
    const size_t length = symbol ? 0 : string_at(segment, address);
    if (walk_datum(walk, address))
        return;
    if (symbol) {
        datum.range.begin = symbol->range.begin + walk->object.bias;
        datum.range.end = symbol->range.end + walk->object.bias;
        datum.name = symbol->name;
    } else if (segment->holds == HOLDS_CONSTANTS && length > 0) {
        datum.range.end = address + length;
    } else if (segment->holds != HOLDS_VARIABLES) {
        fail(walk, "data of unknown extent at %#" PRIxPTR, in_file(walk, address));
    }
    datum.listed = segment->holds == HOLDS_ADDRESSES && symbol &&
                   walk_word(datum.range.begin) == datum.range.end - datum.range.begin;
    walk->data = grow(walk, walk->data, walk->n_data, &walk->most_data, sizeof *walk->data);
    if (!walk->failed)
        walk->data[walk->n_data++] = datum;
}

/* An address was met in code or data: what is there is to be walked. */
static void meet(struct walk *walk, uintptr_t address)
{
    const struct segment *segment = object_segment(&walk->object, address);
    if (!segment)
        return;
    if (segment->holds == HOLDS_CODE)
        add_pending(walk, address);
    else
        add_datum(walk, address);
}

/* The address that a word holds, where it is not another object's. */
static void meet_word(struct walk *walk, uintptr_t at)
{
    if (!object_slot(&walk->object, at))
        meet(walk, walk_word(at));
}

/* The addresses that data holds. */
static void scan(struct walk *walk, const struct datum *datum)
{
    if (datum->holds != HOLDS_ADDRESSES || datum->listed)
        return;
    const struct range range = datum->range; /* `data` may move */
    for (uintptr_t at = range.begin; at + sizeof at <= range.end; at += sizeof at)
        meet_word(walk, at);
}

/* ---- Where an instruction goes ---- */

static const ZydisDecodedOperand *relative_operand(const struct decoded *decoded)
{
    for (int i = 0; i < decoded->instruction.operand_count; i++) {
        const ZydisDecodedOperand *operand = &decoded->operands[i];
        if ((operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative) ||
            (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
             operand->mem.base == ZYDIS_REGISTER_RIP))
            return operand;
    }
    return NULL;
}

static bool is_jump(const struct decoded *d)
{
    return d->instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

static bool is_call(const struct decoded *d)
{
    return d->instruction.meta.category == ZYDIS_CATEGORY_CALL;
}

static bool ends_flow(const struct decoded *d)
{
    const ZydisMnemonic name = d->instruction.mnemonic;
    return is_jump(d) || d->instruction.meta.category == ZYDIS_CATEGORY_RET ||
           name == ZYDIS_MNEMONIC_UD2 || name == ZYDIS_MNEMONIC_INT3 ||
           name == ZYDIS_MNEMONIC_HLT;
}

/* The slot through which a jump or a call goes, such as that of the table of procedures; 0: it
 * goes otherwise. */
static uintptr_t slot_of(const struct decoded *d, uintptr_t at)
{
    const ZydisDecodedOperand *operand = relative_operand(d);
    ZyanU64 slot = 0;
    if (operand && operand->type == ZYDIS_OPERAND_TYPE_MEMORY && (is_jump(d) || is_call(d)))
        ZydisCalcAbsoluteAddress(&d->instruction, operand, at, &slot);
    return slot;
}

/* Whether a call goes to one of those functions of other objects that never return; perhaps by a
 * stub. */
static bool never_returns(const struct walk *walk, const struct decoded *call,
                          const struct line *line)
{
    static const char *const names[] = {
        "abort",      "exit",          "_exit", "__assert_fail", "__stack_chk_fail",
        "__chk_fail", "__fortify_fail"
    };
    struct decoded stub;
    uintptr_t slot = slot_of(call, line->at), at = line->target;
    if (line->kind == LINE_GOES) {
        if (walk_decode(walk, at, &stub) && stub.instruction.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
            at += stub.instruction.length;
        slot = walk_decode(walk, at, &stub) && is_jump(&stub) ? slot_of(&stub, at) : 0;
    }
    char name[WALK_NAME];
    if (slot == 0 || !walk_name(walk, slot, name))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool writes(const struct walk *walk, const struct decoded *d, ZydisRegister name)
{
    const ZydisDecodedOperand *to = &d->operands[0];
    (void)walk;
    return d->instruction.operand_count > 0 && to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           (to->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
           ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, to->reg.value) == name;
}

/* Whether the register of a jump was loaded from a member of something: the call of a function
 * there, and the last thing that this one does.  A table of jumps is added to. */
static bool is_last_call(const struct walk *walk, ZydisRegister name, size_t first)
{
    struct decoded d;
    for (size_t i = walk->n_lines; i-- > first;) {
        if (!walk_decode(walk, walk->lines[i].at, &d) || !writes(walk, &d, name))
            continue;
        const ZydisDecodedOperand *from = &d.operands[1];
        if (d.instruction.mnemonic != ZYDIS_MNEMONIC_MOV)
            return false;
        if (from->type == ZYDIS_OPERAND_TYPE_MEMORY)
            return from->mem.index == ZYDIS_REGISTER_NONE;
        if (from->type != ZYDIS_OPERAND_TYPE_REGISTER)
            return false;
        name = from->reg.value;
    }
    return false;
}

/* A jump that is computed; `first`: the line where its stretch of code begins. */
static void check_computed(struct walk *walk, const struct decoded *d, uintptr_t at,
                           size_t first)
{
    const ZydisDecodedOperand *to = &d->operands[0];
    const bool fine = to->type == ZYDIS_OPERAND_TYPE_MEMORY
                          ? to->mem.index == ZYDIS_REGISTER_NONE
                          : to->type == ZYDIS_OPERAND_TYPE_REGISTER &&
                                is_last_call(walk, to->reg.value, first);
    if (!fine)
        fail(walk, "a computed jump at %#" PRIxPTR, in_file(walk, at));
}

/* ---- Lines ---- */

/* An operand in memory, relative to the instruction. */
static void note_memory(struct walk *walk, const struct decoded *d,
                        const ZydisDecodedOperand *operand, struct line *line)
{
    const struct segment *segment = object_segment(&walk->object, line->target);
    const bool broadcast = d->instruction.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
                           !d->instruction.avx.broadcast.is_static;
    const unsigned bits = broadcast ? operand->element_size : operand->size;
    if (!segment) {
        fail(walk, "an address outside of the library at %#" PRIxPTR, in_file(walk, line->at));
        return;
    }
    const bool known = symbols_find(&walk->symbols, in_file(walk, line->target));
    if (is_jump(d) || is_call(d) || (segment->holds == HOLDS_ADDRESSES && !known)) {
        line->kind = LINE_SLOT;
        meet_word(walk, line->target);
    } else if (operand->mem.type == ZYDIS_MEMOP_TYPE_MEM && bits >= 8 &&
               (segment->holds == HOLDS_CONSTANTS || segment->holds == HOLDS_CODE)) {
        line->kind = LINE_CONSTANT;
        line->bytes = bits / 8;
    } else {
        line->kind = LINE_ADDRESS;
        meet(walk, line->target);
    }
}

static struct line make_line(struct walk *walk, const struct decoded *d, uintptr_t at,
                             size_t first)
{
    struct line line = { .at = at, .kind = LINE_PLAIN };
    const ZydisDecodedOperand *operand = relative_operand(d);
    ZyanU64 target = 0;
    if (operand)
        ZydisCalcAbsoluteAddress(&d->instruction, operand, at, &target);
    line.target = target;
    if (operand && operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        note_memory(walk, d, operand, &line);
    } else if (operand && !is_within(&walk->object.text, target)) {
        fail(walk, "a jump out of the library at %#" PRIxPTR, in_file(walk, at));
    } else if (operand) {
        line.kind = LINE_GOES;
        add_pending(walk, target);
    } else if (is_jump(d)) {
        check_computed(walk, d, at, first);
    } else if (d->instruction.mnemonic == ZYDIS_MNEMONIC_NOP) {
        line.kind = LINE_NOP;
        line.bytes = d->instruction.length;
    }
    return line;
}

/* From an address until the flow ends, or joins what has been walked. */
static void walk_stretch(struct walk *walk, uintptr_t at)
{
    const size_t first = walk->n_lines;
    const struct symbol *symbol = symbols_find(&walk->symbols, in_file(walk, at));
    const uintptr_t end =
        symbol ? symbol->range.end + walk->object.bias : walk->object.text.end;
    struct decoded decoded;
    for (bool more = true; more && !walk->failed;) {
        const bool fine = walk_decode(walk, at, &decoded);
        const uint32_t number = number_at(walk, at);
        if (number || at >= end) { /* behind a function that never returns */
            if (number && walk->n_lines > first)
                add_line(walk, (struct line){ .at = at, .target = at, .kind = LINE_JOIN });
            return;
        }
        if (!fine) {
            fail(walk, "no instruction at %#" PRIxPTR, in_file(walk, at));
            return;
        }
        const struct line line = make_line(walk, &decoded, at, first);
        walk->number[at - walk->object.text.begin] = (uint32_t)walk->n_lines + 1;
        add_line(walk, line);
        more = !ends_flow(&decoded) &&
               !(is_call(&decoded) && never_returns(walk, &decoded, &line));
        at += decoded.instruction.length;
    }
}

bool walk_from(struct walk *walk, const uintptr_t *entries, size_t n, const char *file)
{
    *walk = (struct walk){ .n_lines = 0 };
    if (n == 0 || !object_of(entries[0], &walk->object))
        return fail(walk, "no loader knows the code");
    const struct range *text = &walk->object.text;
    if (is_within(text, walk->object.base))
        return fail(walk, "its segment of code holds constants, too");
    walk->symbols = symbols_read(file ? file : walk->object.file);
    walk->number = calloc(text->end - text->begin, sizeof *walk->number);
    walk->met = calloc(text->end - text->begin, sizeof *walk->met);
    if (!walk->number || !walk->met)
        return fail(walk, "no memory");
    ZydisDecoderInit(&walk->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t i = n; i-- > 0;)
        add_pending(walk, entries[i]);
    while (!walk->failed && (walk->n_pending > 0 || walk->n_scanned < walk->n_data)) {
        if (walk->n_pending > 0)
            walk_stretch(walk, walk->pending[--walk->n_pending]);
        else
            scan(walk, &walk->data[walk->n_scanned++]);
    }
    if (!walk->failed)
        rank_lines(walk);
    return !walk->failed;
}

void walk_free(struct walk *walk)
{
    symbols_free(&walk->symbols);
    free(walk->number);
    free(walk->met);
    free(walk->lines);
    free(walk->pending);
    free(walk->data);
}
