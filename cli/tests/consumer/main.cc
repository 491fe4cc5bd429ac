// The header from C++: one call, one refusal.
#include <posenc.h>

int main()
{
    float slopes[8];
    bool works = posenc_alibi_slopes(8, 8.0, slopes) == POSENC_OK && slopes[0] == 0.5f;
    return works && posenc_alibi_slopes(0, 8.0, slopes) == POSENC_ERR_SHAPE ? 0 : 1;
}
