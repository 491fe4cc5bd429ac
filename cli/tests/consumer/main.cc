// The header from C++, any standard from 11 on: arguments are initialised and three kernels called.
#include <posenc/backend.h>
#include <posenc/experimental.h>

#include <string>
#include <vector>

namespace
{

// Token t of a dense table of ones and of its encoding: sin(0) = 0, cos(0) = 1.
bool sinusoids(const posenc_freqs *freqs)
{
    std::vector<float> x(3 * 8, 1.0f);
    posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.freqs = freqs;
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, x.data(), 3, 8);
    args.x = posenc_const_view(args.out);
    return posenc_sinusoidal_add(nullptr, &args, nullptr) == POSENC_OK && x[0] == 1.0f &&
           x[1] == 2.0f;
}

// A rotation by position 0 changes nothing; the input is const.
bool rotation(const posenc_freqs *freqs)
{
    const std::vector<float> x(8, 0.5f);
    std::vector<float> y(8), cosines(4), sines(4);
    posenc_rope_table_args table = posenc_rope_table_args_init();
    table.freqs = freqs;
    table.cos = posenc_tensor_2d(POSENC_DTYPE_F32, cosines.data(), 1, 4);
    table.sin = posenc_tensor_2d(POSENC_DTYPE_F32, sines.data(), 1, 4);
    posenc_rope_args rope = posenc_rope_args_init();
    rope.cos = posenc_const_view(table.cos);
    rope.sin = posenc_const_view(table.sin);
    rope.x = posenc_const_tensor_3d(POSENC_DTYPE_F32, x.data(), 1, 1, 8);
    rope.out = posenc_tensor_3d(POSENC_DTYPE_F32, y.data(), 1, 1, 8);
    return posenc_rope_table(nullptr, &table, nullptr) == POSENC_OK &&
           posenc_rope_half(nullptr, &rope, nullptr) == POSENC_OK && x == y;
}

// An error has a reason.
bool rejection()
{
    posenc_error error = posenc_error();
    posenc_learned_args args = posenc_learned_args_init();
    return posenc_learned_add(posenc_backend_find("scalar"), &args, &error) ==
               POSENC_ERR_SHAPE &&
           error.what[0] != 0;
}

// As a sentence, in a string of just the length that it needs.
bool sentence()
{
    posenc_error error = posenc_error();
    posenc_freqs_spec spec = posenc_freqs_spec_init();
    posenc_freqs *freqs = nullptr;
    spec.dim = 0;
    if (posenc_freqs_create(&spec, &freqs, &error) != POSENC_ERR_SHAPE)
        return false;
    std::vector<char> text(posenc_error_text(&error, nullptr, 0) + 1);
    posenc_error_text(&error, text.data(), text.size());
    return std::string(text.data()).find("dim is 0, expected from 1 to 65536: ") == 0;
}

// 16 bits and back: what they hold, to the bit.
bool storage()
{
    const std::vector<float> x = { 1.0f, -0.5f, 65504.0f, 5.9604644775390625e-8f };
    std::vector<uint16_t> narrow(x.size());
    std::vector<float> back(x.size());
    const int64_t n = static_cast<int64_t>(x.size());
    return posenc_f32_to_f16(n, x.data(), narrow.data(), nullptr) == POSENC_OK &&
           posenc_f16_to_f32(n, narrow.data(), back.data(), nullptr) == POSENC_OK &&
           back == x && posenc_f32_to_bf16(1, x.data(), narrow.data(), nullptr) == POSENC_OK &&
           narrow[0] == 0x3f80 &&
           posenc_bf16_to_f32(1, narrow.data(), back.data(), nullptr) == POSENC_OK &&
           back[0] == 1.0f;
}

} // namespace

int main()
{
    posenc_freqs_spec spec = posenc_freqs_spec_init();
    posenc_freqs *freqs = nullptr;
    spec.dim = 8;
    if (posenc_freqs_create(&spec, &freqs, nullptr) != POSENC_OK)
        return 1;
    const bool works =
        sinusoids(freqs) && rotation(freqs) && rejection() && sentence() && storage();
    posenc_freqs_destroy(freqs);
    return works ? 0 : 1;
}
