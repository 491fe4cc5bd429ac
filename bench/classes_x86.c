/*
 * Classes of x86-64 instructions, by Zydis where it is there; and of those of this machine.
 */
#include "classes.h"

#ifdef POSENC_HAVE_ZYDIS
#include <Zydis/Zydis.h>

static bool is_vector(ZydisRegister name)
{
    const ZydisRegisterClass kind = ZydisRegisterGetClass(name);
    return kind == ZYDIS_REGCLASS_XMM || kind == ZYDIS_REGCLASS_YMM ||
           kind == ZYDIS_REGCLASS_ZMM;
}

static void add_operand(const ZydisDecodedOperand *operand, struct classes *classes)
{
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        classes->vector |= is_vector(operand->reg.value);
    } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
               operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN) {
        classes->load |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
        classes->store |= (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
        classes->vector |= is_vector(operand->mem.index); /* a gather */
    }
}

bool classify_x86(const unsigned char *code, size_t most, struct classes *classes)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    *classes = (struct classes){ false, false, false, false };
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, most, &instruction, operands)))
        return false;
    const ZydisInstructionCategory category = instruction.meta.category;
    classes->branch = category == ZYDIS_CATEGORY_COND_BR ||
                      category == ZYDIS_CATEGORY_UNCOND_BR || category == ZYDIS_CATEGORY_CALL ||
                      category == ZYDIS_CATEGORY_RET;
    if (category == ZYDIS_CATEGORY_NOP || category == ZYDIS_CATEGORY_WIDENOP ||
        category == ZYDIS_CATEGORY_PREFETCH)
        return true;
    for (int i = 0; i < instruction.operand_count; i++)
        add_operand(&operands[i], classes);
    return true;
}

#else

bool classify_x86(const unsigned char *code, size_t most, struct classes *classes)
{
    (void)code;
    (void)most;
    *classes = (struct classes){ false, false, false, false };
    return false;
}

#endif

bool classify_here(const unsigned char *code, size_t most, struct classes *classes)
{
#if defined(__x86_64__)
    return classify_x86(code, most, classes);
#elif defined(__aarch64__)
    return classify_arm(code, most, classes);
#elif defined(__riscv)
    return classify_riscv(code, most, classes);
#else
    (void)code;
    (void)most;
    (void)classes;
    return false;
#endif
}
