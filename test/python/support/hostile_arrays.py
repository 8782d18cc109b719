"""Random arrays, and objects that look like arrays, in place of an argument: of other strides, sizes, dtypes and kinds."""

import ml_dtypes
import numpy as np

DTYPES = [
    *map(np.dtype, "?bBhHiIlLefdFD"), *map(np.dtype, (">i4", ">f4", "M8[s]", "S4", "O", "i4,f4")),
    *map(np.dtype, (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4)),
]  # fmt: skip
OTHERS = None, 0, -1, 2**70, 10**400, 0.5, 1e39, float("nan"), "text", b"bytes", (), [1.0], True
ENDS = -(2**31), -1, 0, 1, 7, 8, 31, 32, 2**31 - 1


class Subclass(np.ndarray):
    """A subclass of NumPy's arrays, which may give memory another meaning."""


def make_type(**attributes):
    """A type of objects that have these attributes, and the shape and dtype of an array."""

    def __init__(self, array):
        self.shape, self.dtype, self.array = array.shape, array.dtype, array

    return type("Array", (), {"__init__": __init__, **attributes})


def fail(*arguments, **options):
    raise RuntimeError("no memory")


def export(self, **options):
    return self.array.view(np.uint8).__dlpack__()


TYPES = [
    make_type(),
    make_type(__dlpack__=fail, __dlpack_device__=lambda self: (1, 0)),
    make_type(__dlpack__=lambda self, **options: object(), __dlpack_device__=lambda self: (1, 0)),
    make_type(__dlpack__=export, __dlpack_device__=lambda self: (2, 0)),
    make_type(__dlpack__=export, __dlpack_device__=lambda self: (1, 0)),
    make_type(__dlpack__=fail, __dlpack_device__=fail),
]


def draw_view(rng, array):
    """A view of the array's sizes with random strides, also 0 and negative ones, in memory of its own."""
    if not array.ndim:
        return array.copy()
    order = rng.permutation(array.ndim)
    memory = np.zeros([2 * array.shape[axis] + 1 for axis in order], array.dtype).transpose(np.argsort(order))
    indices = []
    for size in array.shape:
        first = int(rng.integers(2))
        last = first + size
        indices.append(
            {0: slice(first, last), 1: slice(first, first + 2 * size, 2), 2: slice(last, first, -1)}[
                int(rng.choice(3, p=(0.8, 0.1, 0.1)))
            ]
        )
    view = memory[tuple(indices)]
    if rng.random() < 0.15:
        axis = int(rng.integers(array.ndim))
        strides = [0 if each == axis else step for each, step in enumerate(view.strides)]
        bits = view.view(f"V{array.itemsize}")  # NumPy makes no strided arrays of some dtypes
        view = np.lib.stride_tricks.as_strided(bits, view.shape, strides).view(array.dtype)
    view[...] = array
    return view


def draw_numbers(rng, array):
    """The array with a few other numbers, if it has integers."""
    if array.dtype.kind not in "iu" or not array.size:
        return array
    changed = array.copy()
    for _ in range(int(rng.integers(1, 3))):
        changed.flat[rng.integers(array.size)] = np.int64(rng.choice(ENDS)).astype(array.dtype)
    return changed


def draw_sizes(rng, array):
    """An array of other sizes: cut, longer, empty, of more or of fewer dimensions."""
    if not array.ndim:
        return array[None]
    axis = int(rng.integers(array.ndim))
    kind = int(rng.integers(6))
    if kind == 0:
        return array.take(range(int(rng.integers(array.shape[axis]))), axis)
    if kind == 1:
        return np.concatenate([array, array], axis)
    if kind == 2:
        return np.expand_dims(array, tuple(range(int(rng.integers(1, 9)))))
    if kind == 3:
        return array.reshape(-1)
    if kind == 4:
        return array.reshape(-1)[:1].reshape(())
    return np.zeros([0 if each == axis else size for each, size in enumerate(array.shape)], array.dtype)


def draw_dtype(rng, array):
    dtype = DTYPES[rng.integers(len(DTYPES))]
    with np.errstate(all="ignore"):
        return np.zeros(array.shape, dtype) if dtype.kind in "SOMV" else array.astype(np.float32).astype(dtype)


def draw_kind(rng, array):
    kind = int(rng.integers(5))
    if kind == 0:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen
    if kind == 1:
        return array.view(Subclass)
    if kind == 2:
        raw = np.zeros(array.nbytes + 16, np.uint8)[1:][: array.nbytes]
        misaligned = raw.view(array.dtype).reshape(array.shape) if array.ndim else array
        misaligned[...] = array
        return misaligned
    if kind == 3:
        return TYPES[rng.integers(len(TYPES))](array)
    return OTHERS[rng.integers(len(OTHERS))]


def draw(rng, array):
    """An object in place of an array: half of them are views that are right."""
    changes = draw_view, draw_view, draw_view, draw_numbers, draw_sizes, draw_dtype, draw_kind
    for change in rng.choice(len(changes), int(rng.integers(1, 3))):
        if not isinstance(array, np.ndarray):
            break
        array = changes[change](rng, array)
    return array
