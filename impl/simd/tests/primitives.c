/*
 * The tests of the primitives of one ISA: POSENC_SIMD names its header, ISA_TESTS what is
 * defined here.  Each primitive of the contract has its row; contract.sh sees to that.
 */
#include "memory.h"

/* In the order of simd.h. */
static const struct test tests[] = {
    { "vf_lanes", .run = lanes_are_few },
    { "vf_set1", .run = same_in_all },
    { "vf_iota", .run = counting },
    { "vf_load", .run = loads, .type = POSENC_F32, .whole = true },
    { "vf_load_n", .run = loads, .type = POSENC_F32 },
    { "vf_store", .run = stores, .type = POSENC_F32, .whole = true },
    { "vf_store_n", .run = stores, .type = POSENC_F32 },
    { "vf_load_f16", .run = loads, .type = POSENC_F16, .whole = true },
    { "vf_load_f16_n", .run = loads, .type = POSENC_F16 },
    { "vf_store_f16", .run = stores, .type = POSENC_F16, .whole = true },
    { "vf_store_f16_n", .run = stores, .type = POSENC_F16 },
    { "vf_load_bf16", .run = loads, .type = POSENC_BF16, .whole = true },
    { "vf_load_bf16_n", .run = loads, .type = POSENC_BF16 },
    { "vf_store_bf16", .run = stores, .type = POSENC_BF16, .whole = true },
    { "vf_store_bf16_n", .run = stores, .type = POSENC_BF16 },
    { "vf_load_bf16_pairs", .run = bf16_pairs },
    { "vf_store_bf16_pairs", .run = bf16_pairs },
    { "vf_pairs_bf16", .run = bf16_pairs },
    { "vf_gather_n", .run = gathers },
    { "vf_gather4", .run = gathers_rows },
    { "vf_stream", .run = streaming },
    { "vf_stream_f16", .run = streaming },
    { "vf_stream_bf16", .run = streaming },
    { "vf_streams", .run = streaming },
    { "stream_end", .run = streaming },
    { "vf_load2_n", .run = load_pairs },
    { "vf_store2_n", .run = store_pairs },
    { "vf_load_twice", .run = load_twice },
    { "vf_zip_lo", .run = permutation, .f32_2 = vf_zip_lo, .source = zipped },
    { "vf_zip_hi", .run = permutation, .f32_2 = vf_zip_hi, .source = zipped_hi },
    { "vf_lookup", .run = lookup },
    { "vf_lookup2", .run = lookup2 },
    { "vf_swap_pairs", .run = permutation, .f32_1 = vf_swap_pairs, .source = swapped },
    { "vf_add", .run = f32_op, .f32_2 = vf_add, .f32 = plain_add },
    { "vf_sub", .run = f32_op, .f32_2 = vf_sub, .f32 = plain_sub },
    { "vf_mul", .run = f32_op, .f32_2 = vf_mul, .f32 = plain_mul },
    { "vf_div", .run = f32_op, .f32_2 = vf_div, .f32 = plain_div },
    { "vf_sqrt", .run = f32_op, .f32_1 = vf_sqrt, .f32 = plain_sqrt },
    { "vf_fma", .run = f32_op, .f32_3 = vf_fma, .f32 = plain_fma },
    { "vf_cross", .run = f32_op, .f32_4 = vf_cross, .f32 = plain_cross },
    { "vf_abs", .run = f32_op, .f32_1 = vf_abs, .f32 = plain_abs, .same_nan = true },
    { "vf_min_abs", .run = f32_op, .f32_2 = vf_min_abs, .f32 = plain_min_abs, .no_nan = true },
    { "vf_select_lt", .run = f32_op, .f32_4 = vf_select_lt, .f32 = plain_select_lt,
      .same_nan = true },
    { "vf_any_lt", .run = any_lt },
    { "vf_none_small", .run = none_small },
    { "vf_keep", .run = f32_op, .f32_1 = vf_keep, .f32 = plain_same, .same_nan = true },
    { "vf_keep_here", .run = f32_op, .f32_1 = vf_keep_here, .f32 = plain_same,
      .same_nan = true },
    { "vd_set1", .run = same_in_all },
    { "vd_load", .run = wide_memory },
    { "vd_store", .run = wide_memory },
    { "vd_add", .run = f64_op, .f64_2 = vd_add, .f64 = plain_add_f64 },
    { "vd_sub", .run = f64_op, .f64_2 = vd_sub, .f64 = plain_sub_f64 },
    { "vd_mul", .run = f64_op, .f64_2 = vd_mul, .f64 = plain_mul_f64 },
    { "vd_fma", .run = f64_op, .f64_3 = vd_fma, .f64 = plain_fma_f64 },
    { "vd_fms", .run = f64_op, .f64_3 = vd_fms, .f64 = plain_fms_f64 },
    { "vd_fnma", .run = f64_op, .f64_3 = vd_fnma, .f64 = plain_fnma_f64 },
    { "vd_from_vf", .run = f64_from_f32 },
    { "vf_from_vd", .run = f32_from_f64 },
    { "vf_turns_from_vd", .run = turns_from_f64 },
    { "vd_from_i64", .run = f64_from_int },
    { "vd_from_u32", .run = f64_from_int },
    { "vq_set1", .run = same_in_all },
    { "vq_load", .run = wide_memory },
    { "vq_add", .run = u64_op, .u64_2 = vq_add, .u64 = plain_add_u64 },
    { "vq_sub", .run = u64_op, .u64_2 = vq_sub, .u64 = plain_sub_u64 },
    { "vq_mul32", .run = u64_op, .u64_2 = vq_mul32, .u64 = plain_mul32 },
    { "vq_shl", .run = shift_left },
    { "vq_shr", .run = shift_right },
    { "vq_from_bits", .run = bits_of },
    { "vd_select_bit0", .run = by_bit },
    { "vf_select_bit0", .run = by_bit },
    { "vd_flip_bit1", .run = by_bit },
    { "vf_flip_bit1", .run = by_bit },
};

static size_t count(void) { return sizeof tests / sizeof *tests; }
static const char *name(size_t test) { return tests[test].name; }
static void run(size_t test) { tests[test].run(&tests[test]); }

extern const struct isa_tests ISA_TESTS;
const struct isa_tests ISA_TESTS = {
    .lanes = vf_lanes, .count = count, .name = name, .run = run
};
