"""Rotates queries and keys of Llama 3.1 8B from Python, by ctypes, and compares one pair with cos 1 and sin 1.

    python3 rope.py [LIBRARY]     LIBRARY is the path of libposenc.so.5 if the loader does not find it
"""

import ctypes
import math
import sys
from ctypes import c_double, c_float, c_int32, c_int64, c_size_t, c_void_p

F32, HALF, LLAMA3 = 0, 0, 2  # POSENC_DTYPE_F32, POSENC_PAIRING_HALF, POSENC_SCALING_LLAMA3
TOKENS, Q_HEADS, K_HEADS, HEAD_DIM = 4, 32, 8, 128


class Spec(ctypes.Structure):
    """The first members of struct posenc_freqs_spec. The others have their defaults, as `size` ends before them."""

    _fields_ = [("size", c_size_t), ("numerics", c_int32), ("spacing", c_int32), ("scaling", c_int32), ("dim", c_int64),
                ("rope_theta", c_double), ("factor", c_double), ("original_max_position_embeddings", c_double),
                ("low_freq_factor", c_double), ("high_freq_factor", c_double)]  # fmt: skip


posenc = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libposenc.so.5")
posenc.posenc_status_string.restype = ctypes.c_char_p
posenc.posenc_rope_apply_dense.argtypes = [c_void_p, c_int32, c_int64, c_int64, c_int64, c_void_p, c_int64, c_void_p,
                                           c_int64, c_void_p]  # fmt: skip


def check(status: int) -> None:
    """Raises an exception for a status other than POSENC_OK."""
    if status:
        raise ValueError(posenc.posenc_status_string(status).decode())


spec = Spec(ctypes.sizeof(Spec), scaling=LLAMA3, dim=HEAD_DIM, rope_theta=500000.0, factor=8.0,
            original_max_position_embeddings=8192.0, low_freq_factor=1.0, high_freq_factor=4.0)  # fmt: skip
rope = c_void_p()
check(posenc.posenc_rope_create(ctypes.byref(spec), HALF, ctypes.byref(rope), None))

# Zeros [tokens, heads, head_dim] in memory of ctypes. Of NumPy arrays, pass array.ctypes.data.
q = (c_float * (TOKENS * Q_HEADS * HEAD_DIM))()
k = (c_float * (TOKENS * K_HEADS * HEAD_DIM))()
token_1 = Q_HEADS * HEAD_DIM
q[token_1] = 1.0  # pair 0, whose angle is the position: (1, 0) becomes (cos 1, sin 1)
check(posenc.posenc_rope_apply_dense(rope, F32, TOKENS, HEAD_DIM, 0, q, Q_HEADS, k, K_HEADS, None))
posenc.posenc_rope_destroy(rope)

cos, sin = q[token_1], q[token_1 + HEAD_DIM // 2]
print(cos, sin, "expected", math.cos(1.0), math.sin(1.0))
sys.exit(abs(cos - math.cos(1.0)) > 1e-7 or abs(sin - math.sin(1.0)) > 1e-7)
