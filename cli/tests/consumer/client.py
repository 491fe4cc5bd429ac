"""The library from ctypes: defaults come from the library, and structs of an older header still work.

    client.py LIBRARY
"""

import ctypes
import math
import sys
from ctypes import POINTER, Structure, byref, c_bool, c_double, c_float, c_int32, c_int64, c_size_t, c_void_p, sizeof

F32, ROPE_HALF, ALIBI_ADD = 0, 5, 8  # of enum posenc_dtype and enum posenc_kernel
OK, ARGUMENT = 0, 1


class Tensor(Structure):
    """struct posenc_tensor and struct posenc_const_tensor."""

    _fields_ = [("data", c_void_p), ("dtype", c_int32), ("rank", c_int32), ("shape", c_int64 * 4),
                ("stride", c_int64 * 4), ("reserved", c_int64 * 2)]  # fmt: skip


class Positions(Structure):
    """struct posenc_positions."""

    _fields_ = [("kind", c_int32), ("offset", c_int64), ("data", c_void_p), ("stride", c_int64 * 3),
                ("reserved", c_int64 * 2)]  # fmt: skip


class RopeArgs(Structure):
    """struct posenc_rope_args."""

    _fields_ = [("size", c_size_t), ("transpose", c_bool), ("rotary_offset", c_int64), ("positions", Positions),
                ("cos", Tensor), ("sin", Tensor), ("x", Tensor), ("out", Tensor)]  # fmt: skip


class NewerRopeArgs(RopeArgs):
    """The same in a header that has a further member."""

    _fields_ = [("added", c_int64)]


class OlderSpec(Structure):
    """struct posenc_freqs_spec in a header where rope_theta was the last member."""

    _fields_ = [("size", c_size_t), ("numerics", c_int32), ("spacing", c_int32), ("scaling", c_int32),
                ("dim", c_int64), ("rope_theta", c_double)]  # fmt: skip


class Error(Structure):
    """struct posenc_error."""

    _fields_ = [("status", c_int32), ("reserved_int", c_int32), ("value", c_double), ("least", c_double),
                ("most", c_double), ("reserved", c_int64 * 2), ("what", ctypes.c_char * 512)]  # fmt: skip


library = ctypes.CDLL(sys.argv[1])
library.posenc_tensor_2d.restype = library.posenc_tensor_3d.restype = Tensor
library.posenc_freqs_create.argtypes = [c_void_p, POINTER(c_void_p), c_void_p]


def tensor(data: "ctypes.Array[c_float]", *shape: int) -> Tensor:
    """Returns a dense tensor."""
    make = library.posenc_tensor_2d if len(shape) == 2 else library.posenc_tensor_3d
    made: Tensor = make(c_int32(F32), data, *map(c_int64, shape))
    return made


def rotate(args: RopeArgs, x: "ctypes.Array[c_float]") -> int:
    """Rotates two pairs by 90 and 180 degrees; args come with defaults."""
    cosines, sines = (c_float * 2)(0, -1), (c_float * 2)(1, 0)
    args.cos, args.sin = tensor(cosines, 1, 2), tensor(sines, 1, 2)
    args.out = tensor(x, 1, 1, 4)
    error = Error()
    status: int = library.posenc_rope_half(None, byref(args), byref(error))
    assert (status == OK) == (error.what == b""), error.what
    return status


def main() -> None:
    """Makes the calls."""
    args, newer = RopeArgs(rotary_offset=99), NewerRopeArgs()
    library.posenc_args_defaults(c_int32(ROPE_HALF), byref(args), c_size_t(sizeof(args)))
    assert args.size == sizeof(args) and args.rotary_offset == 0
    x = (c_float * 4)(1, 2, 3, 4)
    assert rotate(args, x) == OK and list(x) == [-3, -2, 1, -4], list(x)

    library.posenc_args_defaults(c_int32(ROPE_HALF), byref(newer), c_size_t(sizeof(newer)))
    assert newer.size == sizeof(newer) and rotate(newer, x) == OK, "a newer header, its new member unused"
    newer.added = 1
    assert rotate(newer, x) == ARGUMENT, "a new member that the library does not know"

    spec, freqs, view = OlderSpec(), c_void_p(), (c_int64 * 4)()
    library.posenc_freqs_spec_defaults(byref(spec), c_size_t(sizeof(spec)))
    assert (spec.size, spec.rope_theta) == (sizeof(spec), 10000)
    spec.dim = 4
    assert library.posenc_freqs_create(byref(spec), byref(freqs), None) == OK, "an older header"
    library.posenc_freqs_view_get(freqs, view, c_size_t(sizeof(view)))
    omega = ctypes.cast(view[3], POINTER(c_double))
    assert view[2] == 2 and omega[0] == 1 and math.isclose(omega[1], 0.01)
    library.posenc_freqs_destroy(freqs)
    print("ctypes: 90 and 180 degrees, newer and older structs")


main()
