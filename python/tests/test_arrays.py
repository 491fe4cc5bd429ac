"""Arrays that calls reject, memory that calls keep, and threads: what array.c and kernels.c do around a kernel."""

import array
import contextlib
import ctypes
import gc
import sys
import threading
import tracemalloc
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import posenc
import pytest
from conftest import Framework

TOKENS, HEADS, DIM = 4, 2, 8
FREQS = posenc.Frequencies(DIM)
COS, SIN = posenc.rope_table(FREQS, range(16))
ROPE = posenc.Rope(DIM)
SLOPES = posenc.alibi_slopes(HEADS)
BUCKETS = posenc.t5_buckets(8, 16)
LEARNED = np.ones((8, DIM), "f4")  # a table of learned_add
BIAS = np.ones((8, HEADS), "f4")  # a table of t5_bias and window_bias
INDEX = np.zeros((TOKENS, TOKENS), "i4")
POSITIONS = np.arange(TOKENS)
FLOAT64 = np.ones((16, 4))
SCORES = np.ones((2, HEADS, TOKENS, TOKENS), "f4")

# ---- Calls that are rejected ----


def heads(dtype: Any = "f4") -> Any:
    return np.arange(TOKENS * HEADS * DIM).reshape(TOKENS, HEADS, DIM).astype(dtype)


def rope(x: Any, cos: Any = COS, sin: Any = SIN, **more: Any) -> Any:
    return posenc.rope_half(x, cos, sin, **more)


def rope_at(positions: Any) -> Any:
    return posenc.rope_half(heads(), COS, SIN, positions)


def table_on_two_axes(positions: Any) -> Any:
    return posenc.rope_table(posenc.Frequencies(DIM, mrope_section=[2, 2]), positions)


def alibi(slopes: Any) -> Any:
    return posenc.alibi_add(SCORES, slopes)


def window(index: Any) -> Any:
    return posenc.window_bias_add(SCORES, index, BIAS)


def t5(thresholds: Any) -> Any:
    return posenc.t5_bias_add(SCORES, BUCKETS._replace(thresholds=thresholds), BIAS)


def read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


def stride_of_9_bytes() -> Any:
    return np.zeros(TOKENS, np.dtype([("pad", "u1"), ("x", "f4", (DIM,)), ("more", "u1", (HEADS,))]))["x"]


def heads_that_share_memory() -> Any:
    return np.lib.stride_tricks.as_strided(heads(), (TOKENS, HEADS, DIM), (32, 0, 4))


OVERLAPPING = np.ones((TOKENS + 1, HEADS, DIM), "f4")

# A call, and the status, `what` ("": as the library states it) and a part of the text of its error.
WRONG: Dict[str, Tuple[Callable[[], Any], str, str, str]] = {
    "float64": (lambda: rope(heads("f8")), "dtype", "x", "is float64, expected float32, float16 or bfloat16"),
    "big-endian": (lambda: rope(heads(">f4")), "dtype", "x", "in the byte order of this machine"),
    "integers": (lambda: rope(heads("i4")), "dtype", "x", "dtype of x is int32"),
    "unlike x": (lambda: rope(heads(), out=heads("f2")), "dtype", "", "dtype of x"),
    "read-only": (lambda: rope(heads(), out=read_only(heads())), "argument", "out", "out is read-only"),
    "bytes": (lambda: rope(heads(), out=bytes(256)), "argument", "out", "out is read-only"),
    "last dimension": (lambda: rope(heads()[..., ::2], COS[:, :2], SIN[:, :2]), "stride", "", "stride"),
    "odd strides": (lambda: posenc.learned_add(stride_of_9_bytes(), LEARNED), "stride", "x", "no multiple of its"),
    "overlap": (lambda: rope(OVERLAPPING[:TOKENS], out=OVERLAPPING[1 : TOKENS + 1]), "overlap", "", "overlap"),
    "an output that overlaps itself": (lambda: rope(heads(), out=heads_that_share_memory()), "stride", "", "stride"),
    "rank": (lambda: rope(np.ones((1, 1, 1, 1, 8), "f4")), "shape", "", "is 5, expected from 3 to 4"),
    "no rank": (lambda: rope(np.float32(1)), "shape", "", "is 0, expected from 3 to 4"),
    "wide table": (lambda: rope(heads(), np.hstack([COS, COS]), np.hstack([SIN, SIN])), "rotary_dim", "", ""),
    "few positions": (lambda: rope_at(np.arange(TOKENS - 1)), "shape", "positions", "expected [4] or [1, 4]"),
    "positions of other batches": (lambda: rope_at(np.zeros((2, TOKENS), "i8")), "shape", "positions", ""),
    "positions of rank 3": (lambda: rope_at(np.zeros((1, 1, TOKENS), "i8")), "shape", "positions", ""),
    "positions of rank 4": (lambda: rope_at(np.zeros((1, 1, 1, TOKENS), "i8")), "shape", "positions", "is 4"),
    "one position for all": (lambda: rope_at(np.broadcast_to(np.int64(3), TOKENS)), "stride", "positions", ""),
    "fractions for rows": (lambda: rope_at(np.ones(TOKENS, "f4")), "argument", "", ""),
    "positions of bytes": (lambda: rope_at(np.ones(TOKENS, "u1")), "dtype", "positions", "expected int32, int64"),
    "a row that is not there": (lambda: rope_at(np.array([0, 1, 2, 16])), "position", "", "is 16"),
    "a negative row": (lambda: rope_at(-1), "position", "", "is -1"),
    "axes": (lambda: table_on_two_axes(np.zeros((3, TOKENS), "i8")), "shape", "positions", ""),
    "slopes": (lambda: alibi(np.ones(HEADS + 1, "f4")), "shape", "slopes", "is [3], expected [2]"),
    "slopes of other batches": (lambda: alibi(np.ones((3, HEADS), "f4")), "shape", "slopes",
                                "is [3, 2], expected [2, 2]"),
    "slopes with steps": (lambda: alibi(np.ones((HEADS, 2), "f4")[:, 0]), "stride", "slopes", ""),
    "slopes of float64": (lambda: alibi(np.ones(HEADS)), "dtype", "slopes", "expected float32"),
    "index of int64": (lambda: window(INDEX.astype("i8")), "dtype", "index", "expected int32"),
    "small index": (lambda: window(INDEX[:3]), "shape", "index", "is [3, 4], expected [4, 4]"),
    "flat index": (lambda: window(INDEX.ravel()), "shape", "index", "is [16], expected [4, 4]"),
    "transposed index": (lambda: window(INDEX.T), "stride", "index", ""),
    "index with a gap": (lambda: window(np.zeros((TOKENS, 6), "i4")[:, :TOKENS]), "stride", "index", "not contiguous"),
    "index that repeats a row": (lambda: window(np.broadcast_to(INDEX[0], (TOKENS, TOKENS))), "stride", "index", ""),
    "index beyond the table": (lambda: window(INDEX + 8), "position", "", "is 8"),
    "short relative index": (lambda: posenc.relative_sum(SCORES, np.zeros(6, "i4"), columns=3), "shape", "index",
                             "is [6], expected [7]"),
    "a table of rank 1": (lambda: posenc.window_bias(INDEX, BIAS[0]), "shape", "table", "too few dimensions"),
    "thresholds": (lambda: t5(BUCKETS.thresholds[:3]), "shape", "thresholds", "is [3], expected [4]"),
    "no such backend": (lambda: rope(heads(), backend="mmx"), "unknown", "backend", "'mmx' is unknown"),
    "layout": (lambda: posenc.sinusoidal(FREQS, range(2), layout="cos"), "argument", "layout",
               "expected one of interleaved sin_cos cos_sin"),
    "scale": (lambda: posenc.sinusoidal(FREQS, range(2), scale=1e300), "parameter", "", "scale"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arrays_are_rejected(name: str) -> None:
    call, status, what, text = WRONG[name]
    with pytest.raises(posenc.Error) as raised:
        call()
    error = raised.value
    assert (error.status, error.what or what) == (status, what or error.what), error
    assert text in str(error) and isinstance(error, ValueError)


def test_type_errors() -> None:
    x: Any = heads()
    frequencies: Any = posenc.Frequencies  # without the types of its parameters
    calls: List[Tuple[Callable[[], Any], str]] = [
        (lambda: posenc.rope_half(x, COS), "lacks the argument 'sin'"),
        (lambda: posenc.rope_half(x, COS, SIN, 0, 1), "takes at most 4 positional arguments"),
        (lambda: posenc.rope_half(x, COS, SIN, x=x), "multiple values for argument 'x'"),
        (lambda: posenc.rope_half(x, COS, SIN, theta=1), "unexpected keyword argument 'theta'"),
        (lambda: posenc.rope_half([1.0], COS, SIN), "x: expected an array"),
        (lambda: posenc.rope_half(x, COS, SIN, [0, 1]), "positions: expected an array"),
        (lambda: posenc.rope_half(x, COS, SIN, 0.5), "positions: expected an array"),
        (lambda: posenc.rope_half(x, COS, SIN, backend=1), "backend: expected a name"),
        (lambda: posenc.rope_half(x, COS, SIN, rotary_offset="a"), "integer"),
        (lambda: posenc.rope_table(128, range(3)), "expected posenc.Frequencies"),
        (lambda: posenc.rope_table(FREQS, range(16), cos=COS), "lacks the argument 'sin' beside 'cos'"),
        (lambda: posenc.rope_table(FREQS, 3), "expected a range or an array"),
        (lambda: posenc.alibi(SLOPES, queries=3), r"alibi\(\) lacks the argument 'keys'"),
        (lambda: posenc.learned_grad(x), r"learned_grad\(\) lacks the argument 'rows'"),
        (lambda: posenc.relative_bias(np.zeros(3, "i4")), r"relative_bias\(\) lacks c2p and p2c"),
        (lambda: frequencies(8, thetas=1), "unexpected keyword argument 'thetas'"),
        (lambda: frequencies(8, scaling=3), "scaling: expected one of none linear"),
    ]  # fmt: skip
    for call, text in calls:
        with pytest.raises(TypeError, match=text):
            call()


def test_outputs_are_unchanged_on_an_error() -> None:
    out = heads()
    with pytest.raises(posenc.Error):
        posenc.rope_half(heads(), COS, SIN, np.array([0, 1, 2, 99]), out=out)
    assert (out == heads()).all()


def test_empty_arrays() -> None:
    for shape in ((0, HEADS, DIM), (0, TOKENS, HEADS, DIM), (2, 0, HEADS, DIM)):
        assert posenc.rope_half(np.ones(shape, "f4"), COS, SIN).shape == shape
    empty = np.ones((1, HEADS, 0, 3), "f4")
    assert posenc.relative_sum(empty, np.zeros(0, "i4"), columns=2).shape == (1, HEADS, 0, 2)
    assert posenc.window_bias_add(empty, np.zeros((0, 3), "i4"), BIAS).shape == empty.shape


def test_buffers_without_numpy() -> None:
    x = array.array("f", range(TOKENS * HEADS * DIM))
    out = array.array("f", bytes(4 * TOKENS * HEADS * DIM))
    shaped = memoryview(x).cast("B").cast("f", (TOKENS, HEADS, DIM))
    result = memoryview(out).cast("B").cast("f", (TOKENS, HEADS, DIM))
    assert posenc.rope_half(shaped, COS, SIN, out=result) is result
    assert (np.array(out).reshape(TOKENS, HEADS, DIM) == posenc.rope_half(heads(), COS, SIN)).all()


def test_torch_tensors_that_need_gradients() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(posenc.Error, match=r"x requires gradients, expected x.detach\(\)"):
        posenc.rope_half(torch.ones(TOKENS, HEADS, DIM, requires_grad=True), COS, SIN)
    with pytest.raises(posenc.Error, match="q requires gradients"):
        ROPE(torch.ones(TOKENS, HEADS, DIM, requires_grad=True))


class Lender:
    """Offers an array by __dlpack__() alone: without words in the form before DLPack 1.0, or in that of max_version."""

    def __init__(self, array: Any, **words: Any) -> None:
        self.array, self.words = array, words

    def __dlpack__(self, **words: Any) -> Any:
        if "max_version" in words and not self.words:
            raise TypeError("an older release")
        return self.array.__dlpack__(**self.words)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("words", [{}, {"max_version": (1, 0)}])
def test_capsules(words: Any) -> None:
    """Strides, an offset and flags of both forms of capsules; NumPy flags arrays that are read-only."""
    if words and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("this NumPy has the older form alone")
    wide = np.zeros((TOKENS, 3 * HEADS, DIM), "f4")
    x = wide[:, HEADS : 2 * HEADS]
    x[...] = heads()
    out = np.zeros((TOKENS, DIM, HEADS, 1), "f4")[..., 0].transpose(0, 2, 1).copy()
    lent = Lender(out, **words)
    assert posenc.rope_half(Lender(x, **words), COS, SIN, out=lent) is lent
    assert (out == posenc.rope_half(heads(), COS, SIN)).all()
    assert (posenc.rope_half(lent, COS, SIN) == posenc.rope_half(out, COS, SIN)).all()
    before = sys.getrefcount(x)
    for _ in range(50):
        posenc.rope_half(Lender(x, **words), COS, SIN, out=out)
    assert sys.getrefcount(x) < before + 25
    if words:
        with pytest.raises(posenc.Error, match="out is read-only"):
            posenc.rope_half(x, COS, SIN, out=Lender(read_only(out), **words))


def test_capsules_with_an_offset_and_without_strides() -> None:
    class Edited(Lender):
        """Moves 64 bytes from the pointer to the offset, and drops the strides, which then are dense."""

        def __dlpack__(self, **_: Any) -> Any:
            capsule = self.array.__dlpack__()
            members = ctypes.cast(pointer_of(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_uint64))
            members[0] -= 64  # data
            members[4] = 0  # strides
            members[5] += 64  # byte_offset
            return capsule

    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    assert (posenc.rope_half(Edited(heads()), COS, SIN, out=heads()) == posenc.rope_half(heads(), COS, SIN)).all()


def test_devices() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises((posenc.Error, BufferError, RuntimeError, NotImplementedError)):
        posenc.rope_half(torch.ones(TOKENS, HEADS, DIM, device="meta"), COS, SIN)


# ---- Memory ----


CALLS: Dict[str, Callable[[Any], Any]] = {  # of an array, some of which fail, each at another stage
    "new": lambda x: posenc.rope_half(x, COS, SIN),
    "out": lambda x: posenc.rope_half(x, COS, SIN, out=x),
    "keywords": lambda x: posenc.rope_half(x=x, cos=COS, sin=SIN, positions=POSITIONS),
    "pair": lambda x: posenc.rope_table(FREQS, POSITIONS),
    "name": lambda x: posenc.rope_half(x, COS, SIN, nonsense=x),
    "array": lambda x: posenc.rope_half(x, COS, object()),
    "dtype": lambda x: posenc.rope_half(x, COS, FLOAT64),
    "library": lambda x: posenc.rope_half(x, COS, SIN, 99),
    "rope": lambda x: ROPE(x, x),
    "in place": lambda x: ROPE(x, positions=POSITIONS, inplace=True),
    "freqs": lambda x: ROPE.freqs.inv_freq,
    "spec": lambda x: posenc.Frequencies(8, short_factor=[1, 2, 3, 4], long_factor=[1, 2], scaling="longrope"),
    "alibi": lambda x: posenc.alibi(SLOPES, queries=2, keys=2),
    "buckets": lambda x: posenc.t5_bias_add(SCORES, BUCKETS, BIAS),
}


def attempt(call: Callable[[Any], Any], x: Any) -> None:
    with contextlib.suppress(ValueError, TypeError):
        call(x)


@pytest.mark.parametrize("name", CALLS)
def test_no_reference_is_kept(name: str, framework_name: str) -> None:
    x = Framework(framework_name, "float32").array(heads())
    objects = (x, COS, SIN, FREQS, POSITIONS, SLOPES, SCORES, BIAS, BUCKETS, BUCKETS.thresholds, FLOAT64, ROPE,
               ROPE._handle)  # fmt: skip
    attempt(CALLS[name], x)
    before = [sys.getrefcount(one) for one in objects]
    for _ in range(50):
        attempt(CALLS[name], x)
    after = [sys.getrefcount(one) for one in objects]
    assert [abs(a - b) < 25 for a, b in zip(after, before)] == [True] * len(objects), (before, after)


@pytest.mark.parametrize("name", CALLS)
def test_no_memory_is_kept(name: str) -> None:
    x = heads()
    for _ in range(20):
        attempt(CALLS[name], x)
    gc.freeze()  # what was there before is not searched
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3000):
            attempt(CALLS[name], x)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    assert grown < 3000 * 16, f"{grown} bytes in 3000 calls"


class Used(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in "a b c d mapped f g used i j".split()]


@pytest.mark.parametrize("make", [posenc.Frequencies, posenc.Rope, lambda dim: posenc.Rope(dim).freqs])
def test_the_library_frees_its_memory(make: Callable[[int], Any]) -> None:
    """Each object has more than 28 bytes for a pair, outside the memory that Python traces."""
    mallinfo: Any = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if not mallinfo:
        pytest.skip("the C library has no mallinfo2()")
    mallinfo.restype = Used

    def used() -> int:
        info = mallinfo()
        return int(info.used + info.mapped)

    make(4096)
    before = used()
    for _ in range(100):
        make(4096)
    assert used() - before < 100 * 2048 * 14


# ---- Threads ----


def other_thread_runs(call: Callable[[], Any], most: int) -> bool:
    """Returns true if another thread runs during one of at most `most` calls.

    Python switches threads after an interval, which is made endless. A waiting thread then runs only if a call
    releases the lock of the interpreter.
    """
    ran, wait = [False], threading.Lock()
    interval = sys.getswitchinterval()
    wait.acquire()

    def run() -> None:
        with wait:
            ran[0] = True

    thread = threading.Thread(target=run)
    thread.start()
    sys.setswitchinterval(1e6)
    try:
        wait.release()
        for _ in range(most):
            call()
            if ran[0]:
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_large_calls_let_other_threads_run() -> None:
    x = np.ones((2048, 32, 128), "f4")
    cos, sin = posenc.rope_table(posenc.Frequencies(128), range(2048))
    assert other_thread_runs(lambda: posenc.rope_half(x, cos, sin, out=x), 2000)


def test_threads_share_a_rotation() -> None:
    rope, x = posenc.Rope(64), np.random.default_rng(1).random((3000, 2, 64), "f4")
    expected = rope(x)
    results: Dict[int, Any] = {}
    threads = [threading.Thread(target=lambda i=i: results.update({i: rope(x)})) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all((result == expected).all() for result in results.values())
