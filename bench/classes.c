/*
 * Classes of instructions: by the tables of the architectures' manuals, where encodings are
 * regular enough to be read off (Arm Architecture Reference Manual C4.1; RISC-V Unprivileged
 * Architecture 20240411, chapters 34 and 28.8).  x86 is in classes_x86.c.
 */
#include "classes.h"

#include <stdint.h>

static uint32_t word_at(const unsigned char *code)
{
    return code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;
}

static bool has(uint32_t word, uint32_t mask, uint32_t value) { return (word & mask) == value; }

/* ---- A64 ---- */

static bool arm_branches(uint32_t w)
{
    return has(w, 0x7c000000, 0x14000000) || /* b, bl */
           has(w, 0x7c000000, 0x34000000) || /* cbz, cbnz, tbz, tbnz */
           has(w, 0xff000000, 0x54000000) || /* b.cond */
           has(w, 0xfe000000, 0xd6000000);   /* br, blr, ret */
}

/* Loads and stores but SVE's: bit 22 tells most of them apart. */
static void arm_memory(uint32_t w, struct classes *c)
{
    const bool vector = w >> 26 & 1, bit = w >> 22 & 1;
    const uint32_t size = w >> 30, opc = w >> 22 & 3;
    c->vector = vector;
    c->load = bit;
    if (has(w, 0x3b000000, 0x18000000)) { /* from an address relative to it */
        c->load = vector || size != 3;    /* prfm */
        return;
    }
    if (has(w, 0x3b200c00, 0x38200000) && !vector) { /* atomics: both */
        c->load = c->store = true;
        return;
    }
    if (has(w, 0x38000000, 0x38000000) && !vector) {    /* one register */
        c->load = opc != 0 && !(size == 3 && opc == 2); /* prfm */
        c->store = opc == 0;
        return;
    }
    c->store = !c->load;
}

bool classify_arm(const unsigned char *code, size_t most, struct classes *c)
{
    *c = (struct classes){ false, false, false, false };
    if (most < 4)
        return false;
    const uint32_t w = word_at(code), group = w >> 25 & 15;
    if (group == 2) { /* SVE: the topmost bits say whether it touches memory */
        c->vector = true;
        c->load = w >> 31 && w >> 29 != 7;
        c->store = w >> 29 == 7;
    } else if ((group & 5) == 4) {
        arm_memory(w, c);
    } else if ((group & 7) == 7) {
        c->vector = true;
    } else {
        c->branch = arm_branches(w);
    }
    return true;
}

/* ---- RISC-V ---- */

static void riscv_compressed(uint32_t w, struct classes *c)
{
    const uint32_t quadrant = w & 3, funct = w >> 13 & 7;
    const bool memory = quadrant == 0 || quadrant == 2;
    c->load = memory && funct >= 1 && funct <= 3;
    c->store = memory && funct >= 5;
    c->branch = (quadrant == 1 && funct >= 5) ||
                (quadrant == 2 && funct == 4 && (w >> 2 & 31) == 0 && (w >> 7 & 31) != 0);
}

bool classify_riscv(const unsigned char *code, size_t most, struct classes *c)
{
    *c = (struct classes){ false, false, false, false };
    if (most >= 2 && (code[0] & 3) != 3) {
        riscv_compressed(code[0] | (uint32_t)code[1] << 8, c);
        return true;
    }
    if (most < 4)
        return false;
    const uint32_t w = word_at(code), opcode = w & 0x7f, width = w >> 12 & 7;
    const bool of_vectors = width == 0 || width > 4;
    switch (opcode) {
    case 0x03:
        c->load = true;
        break;
    case 0x23:
        c->store = true;
        break;
    case 0x07:
        c->load = true;
        c->vector = of_vectors;
        break;
    case 0x27:
        c->store = true;
        c->vector = of_vectors;
        break;
    case 0x2f:
        c->load = c->store = true;
        break; /* atomics */
    case 0x57:
        c->vector = true;
        break;
    case 0x63: /* conditional */
    case 0x67: /* jalr */
    case 0x6f: /* jal */
        c->branch = true;
        break;
    default:
        break;
    }
    return true;
}
