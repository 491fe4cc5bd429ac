/*
 * A plug-in of qemu-user that counts the instructions between two marks (bench/marks.h), in the
 * program's own code and elsewhere, and writes them into a file that the program reads.
 *
 *     cc -O2 -fPIC -shared -I. bench/counter.c -o counter.so
 *     POSENC_COUNTER=FILE qemu-aarch64 -plugin counter.so,to=FILE PROGRAM
 *
 * Debian has no qemu-plugin.h: the few declarations of version 1 of the interface that are needed
 * stand here, as QEMU's documentation of TCG plug-ins has them.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench/marks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

/* ---- The interface ---- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
};
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*call)(qemu_plugin_id_t id,
                                                        struct qemu_plugin_tb *block));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
                                            void (*call)(unsigned cpu, void *user),
                                            enum qemu_plugin_cb_flags flags, void *user);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *instruction,
                                                enum qemu_plugin_op op, void *to,
                                                uint64_t number);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);
uint64_t qemu_plugin_start_code(void);
uint64_t qemu_plugin_end_code(void);
extern EXPORTED int qemu_plugin_version;
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                                 char **argv);

EXPORTED int qemu_plugin_version = 1;

/* ---- Counting ---- */

enum { INSIDE, OUTSIDE, COUNTERS };

static uint64_t counters[COUNTERS], begun[COUNTERS];
static const char *path;
static uint32_t marks[2];
static size_t mark_at; /* of the mark's number in its instruction */

static void begin(unsigned cpu, void *user)
{
    (void)cpu;
    (void)user;
    memcpy(begun, counters, sizeof begun);
}

static void end(unsigned cpu, void *user)
{
    (void)cpu;
    (void)user;
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "%" PRIu64 " %" PRIu64 "\n", counters[INSIDE] - begun[INSIDE],
            counters[OUTSIDE] - begun[OUTSIDE]);
    fclose(file);
}

static bool is_mark(const unsigned char *code, size_t size, uint32_t mark)
{
    static const unsigned char wide_nop[] = { 0x0f, 0x1f, 0x80 };
    uint32_t number;
    if (size != mark_at + sizeof number || memcmp(code, wide_nop, mark_at) != 0)
        return false;
    memcpy(&number, code + mark_at, sizeof number);
    return number == mark;
}

static void count_instruction(struct qemu_plugin_insn *instruction)
{
    const unsigned char *code = qemu_plugin_insn_data(instruction);
    const size_t size = qemu_plugin_insn_size(instruction);
    const uint64_t at = qemu_plugin_insn_vaddr(instruction);
    const bool inside = at >= qemu_plugin_start_code() && at < qemu_plugin_end_code();
    if (is_mark(code, size, marks[0]))
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, begin, QEMU_PLUGIN_CB_NO_REGS,
                                               NULL);
    if (is_mark(code, size, marks[1]))
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, end, QEMU_PLUGIN_CB_NO_REGS, NULL);
    qemu_plugin_register_vcpu_insn_exec_inline(instruction, QEMU_PLUGIN_INLINE_ADD_U64,
                                               &counters[inside ? INSIDE : OUTSIDE], 1);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        count_instruction(qemu_plugin_tb_get_insn(block, i));
}

static bool choose_target(const char *name)
{
    static const struct {
        const char *name;
        uint32_t marks[2];
        size_t mark_at;
    } targets[] = {
        { "aarch64", { MARK_ARM_BEGIN, MARK_ARM_END }, 0 },
        { "riscv64", { MARK_RISCV_BEGIN, MARK_RISCV_END }, 0 },
        { "x86_64", { MARK_X86_BEGIN, MARK_X86_END }, 3 },
    };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, name) == 0) {
            memcpy(marks, targets[i].marks, sizeof marks);
            mark_at = targets[i].mark_at;
            return true;
        }
    return false;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
                        char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "to=", 3) == 0)
            path = strdup(argv[i] + 3);
    if (!path || !choose_target(info->target_name)) {
        fprintf(stderr,
                "counter: %s: expected to=PATH, and a program for aarch64, riscv64 or "
                "x86_64\n",
                info->target_name);
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
