"""A stand-in driver of CUDA in this process, which uses the emulator: test/Runtime/fake-cuda."""

import contextlib
import ctypes
import functools

import kvcache
import ml_dtypes
import numpy as np
from places import BUILD

CHIP = "sm_90a"
LIBRARY = BUILD / "test/Runtime/libfake_cuda.so"
OPTIONS = {
    "FAKE_CUDA_QUIET": "1",
    "FAKE_CUDA_VERSION": "13000",
    "FAKE_CUDA_DEVICES": "2",
    "FAKE_CUDA_EMULATOR": str(BUILD / "lib/libkvcache_emulator.so"),
}


class Standin:
    """The driver's own functions. Once loaded, it is ``libcuda.so.1`` for all others of this process."""

    def __init__(self):
        self._library = ctypes.CDLL(str(LIBRARY))
        for name, value in OPTIONS.items():
            self._library.fakeCudaSetOption(name.encode(), value.encode())
        self._library.fakeCudaTakeCalls.restype = ctypes.c_char_p
        self._library.fakeCudaTakeViolations.restype = ctypes.c_char_p
        self._emulated = []

    def reset(self):
        self._library.fakeCudaReset()

    @contextlib.contextmanager
    def idle(self):
        """Makes launches do nothing, in almost no time."""
        self._library.fakeCudaSetIdle(True)
        try:
            yield
        finally:
            self._library.fakeCudaSetIdle(False)

    @contextlib.contextmanager
    def failing(self, function, error):
        """Makes a function of the driver fail with an error."""
        self._library.fakeCudaSetOption(b"FAKE_CUDA_FAIL", f"{function}={error}".encode())
        try:
            yield
        finally:
            self._library.fakeCudaSetOption(b"FAKE_CUDA_FAIL", b"")

    @contextlib.contextmanager
    def elapsed(self, milliseconds):
        """Makes a time the one between any two events."""
        self._library.fakeCudaSetOption(b"FAKE_CUDA_ELAPSED", str(milliseconds).encode())
        try:
            yield
        finally:
            self._library.fakeCudaSetOption(b"FAKE_CUDA_ELAPSED", b"")

    def calls(self):
        """Returns the calls since the last time."""
        return self._library.fakeCudaTakeCalls().decode().splitlines()

    def violations(self):
        return self._library.fakeCudaTakeViolations().decode().splitlines()

    @contextlib.contextmanager
    def rules(self, stream):
        """Forbids allocations, synchronization, and work on other streams or in other contexts."""
        self._library.fakeCudaGuard(ctypes.c_void_p(int(stream)))
        yield
        if found := self.violations():
            raise AssertionError("\n".join(found))

    def emulate(self, source, **options):
        """Lets kernels of a source run."""
        program = compile_for_emulator(source, **options)
        self._emulated.append(program)
        for _, name, binary in program._compiled.kernels:
            self._library.fakeCudaAddKernel(name.encode(), ctypes.c_void_p(binary))

    def jit(self, source, **options):
        """A program for CUDA whose kernels run."""
        options.setdefault("opt_level", 0)
        program = kvcache.jit(source, f"cuda:{CHIP}", **options)
        options.pop("capturable", None)
        self.emulate(source, **options)
        return program


@functools.cache
def compile_for_emulator(source, opt_level=0, **options):
    return kvcache.jit(source, f"emulator:{CHIP}", opt_level=opt_level, **options)


@functools.cache
def get():
    return Standin()


def succeed(result):
    """Returns the value of a call of cuda-bindings, which must succeed."""
    error, *values = result
    assert int(error) == 0, error
    return values[0] if len(values) == 1 else tuple(values)


class DeviceArray:
    """A copy of an array in memory of cuda-bindings."""

    def __init__(self, array, device=0):
        from cuda.bindings import driver

        self._driver = driver
        self.device = device
        self._shape, self._dtype = array.shape, array.dtype
        self.address = int(succeed(driver.cuMemAlloc(max(array.nbytes, 1))))
        contiguous = np.ascontiguousarray(array)
        succeed(driver.cuMemcpyHtoD(self.address, contiguous.ctypes.data, array.nbytes))

    @property
    def __cuda_array_interface__(self):
        typestr = self._dtype.str if self._dtype.kind in "iuf" else f"<u{self._dtype.itemsize}"
        return {"data": (self.address, False), "shape": self._shape, "typestr": typestr, "version": 3}

    def tensor(self):
        """The tensor of TVM-FFI, which frameworks get through DLPack."""
        from kvcache.devices import tensors

        return tensors.place(np.empty(self._shape, self._dtype), self.address, self.device)

    def numpy(self):
        """Copies the array to the host, after the work of the default stream."""
        array = np.empty(self._shape, self._dtype)
        succeed(self._driver.cuMemcpyDtoH(array.ctypes.data, self.address, array.nbytes))
        return array


def make_append():
    """The arguments of examples/append.mlir, which writes rows of three sequences."""
    random = np.random.default_rng(5)
    blocks = np.zeros((6, 2, 2, 64, 8, 128), ml_dtypes.bfloat16)
    lengths = np.array([3, 64, 0], np.int32)
    table = np.array([[1, 0], [4, 5], [2, 0]], np.int32)
    rows = [random.standard_normal((7, 8, 128)).astype(ml_dtypes.bfloat16) for _ in range(2)]
    offsets = np.array([0, 2, 3, 7], np.int32)
    return [blocks, lengths, table, 4, 66, 1, *rows, offsets]
