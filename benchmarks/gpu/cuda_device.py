"""A GPU with one stream, by the CUDA driver."""

from __future__ import annotations

import ctypes
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from .arguments import TensorMap

INSTALL = "install it by: python -m pip install cuda-bindings"
LONGEST_WAIT = 120
"""Seconds."""
_DEFAULT_SHARED_BYTES = 48 * 1024

Grid = tuple[int, int, int]


class DeviceError(RuntimeError):
    """There is no device, or it failed."""


class OutOfMemoryError(DeviceError):
    """The device has not enough memory."""


@dataclass(frozen=True)
class Facts:
    """A device's own description. ``clock_bandwidth`` is that of its memory by clock and width, or 0."""

    name: str
    bus_id: str
    capability: tuple[int, int]
    driver: str
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    clock_bandwidth: float  # bytes per second


def import_driver() -> ModuleType:
    """The module ``cuda.bindings.driver``."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DeviceError(f"the package cuda-bindings is missing ({error}); {INSTALL}") from error


class CudaDevice:
    """The first GPU, in its primary context, as PyTorch uses it too. Handles are opaque; addresses are numbers.

    Everything may raise ``DeviceError``; ``synchronize`` and ``download`` see the errors of kernels.
    """

    def __init__(self, driver: Any = None) -> None:
        self._driver = driver or import_driver()
        self._call("cuInit", 0)
        self._device = self._call("cuDeviceGet", 0)
        self._context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._call("cuCtxSetCurrent", self._context)
        # One that waits for the default stream, on which uploads are.
        self.stream = self._call("cuStreamCreate", self._driver.CUstream_flags.CU_STREAM_DEFAULT)
        self._modules: list[Any] = []
        self.facts = self._read_facts()

    def _try(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        """Calls the driver, which gives an error and then the results."""
        try:
            return getattr(self._driver, name)(*arguments)
        except RuntimeError as failure:  # cuda-bindings has found no driver
            raise DeviceError(f"no CUDA driver: {failure}") from failure

    def _check(self, name: str, error: Any) -> None:
        codes = self._driver.CUresult
        if error != codes.CUDA_SUCCESS:
            kind = OutOfMemoryError if error == codes.CUDA_ERROR_OUT_OF_MEMORY else DeviceError
            raise kind(f"{name}: {getattr(error, 'name', error)}")

    def _call(self, name: str, *arguments: Any) -> Any:
        error, *results = self._try(name, *arguments)
        self._check(name, error)
        return results[0] if len(results) == 1 else results

    def _read_facts(self) -> Facts:
        def attribute(name: str) -> int:
            code = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
            return self._call("cuDeviceGetAttribute", code, self._device)

        def text(result: bytes) -> str:
            return result.split(b"\0")[0].decode()

        version = self._call("cuDriverGetVersion")
        # Kilohertz, bits, and two transfers in a clock.
        bandwidth = attribute("MEMORY_CLOCK_RATE") * 1e3 * attribute("GLOBAL_MEMORY_BUS_WIDTH") / 8 * 2
        return Facts(
            name=text(self._call("cuDeviceGetName", 256, self._device)),
            bus_id=text(self._call("cuDeviceGetPCIBusId", 32, self._device)),
            capability=(attribute("COMPUTE_CAPABILITY_MAJOR"), attribute("COMPUTE_CAPABILITY_MINOR")),
            driver=f"CUDA {version // 1000}.{version % 1000 // 10}",
            multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
            memory_bytes=self._call("cuDeviceTotalMem", self._device),
            l2_bytes=attribute("L2_CACHE_SIZE"),
            clock_bandwidth=bandwidth,
        )

    # --- Kernels ---

    def load(self, cubin: bytes, kernel: str, shared_bytes: int) -> Any:
        """Loads a kernel to launch with so much dynamic shared memory."""
        module = self._call("cuModuleLoadData", cubin)
        self._modules.append(module)
        function = self._call("cuModuleGetFunction", module, kernel.encode())
        if shared_bytes > _DEFAULT_SHARED_BYTES:
            attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, attribute, shared_bytes)
        return function

    def list_parameters(self, kernel: Any) -> list[int]:
        """The bytes of each of a kernel's parameters, as its machine code says."""
        sizes: list[int] = []
        while True:
            error, *place = self._try("cuFuncGetParamInfo", kernel, len(sizes))
            if error == self._driver.CUresult.CUDA_ERROR_INVALID_VALUE:  # there is none more
                return sizes
            self._check("cuFuncGetParamInfo", error)
            sizes.append(place[1])

    def prepare(self, kernel: Any, grid: Grid, block: Grid, shared_bytes: int, arguments: Sequence[bytes]
                ) -> Callable[[], None]:
        if 0 in grid:
            return lambda: None
        # The driver takes a pointer for each parameter, and copies what it points at before it returns.
        buffers = [ctypes.create_string_buffer(argument, len(argument)) for argument in arguments]
        pointers = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
        geometry = (*grid, *block, shared_bytes, self.stream)

        def launch(_kept: object = buffers) -> None:  # the pointers alone would not keep them
            self._call("cuLaunchKernel", kernel, *geometry, ctypes.addressof(pointers), 0)

        return launch

    def encode(self, tensor_map: TensorMap) -> bytes:
        driver = self._driver
        types = {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"}
        swizzle = "NONE" if tensor_map.swizzle == "none" else tensor_map.swizzle.upper()
        promotion = f"L2_{tensor_map.l2_promotion}B" if tensor_map.l2_promotion else "NONE"
        described = self._call(
            "cuTensorMapEncodeTiled",
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{types[tensor_map.element_bytes]}"),
            len(tensor_map.dims),
            tensor_map.address,
            [driver.cuuint64_t(size) for size in tensor_map.dims],
            [driver.cuuint64_t(stride) for stride in tensor_map.stride_bytes],
            [driver.cuuint32_t(size) for size in tensor_map.box],
            [driver.cuuint32_t(1)] * len(tensor_map.dims),
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
            getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}"),
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        return b"".join(int(word).to_bytes(8, "little") for word in described.opaque)

    # --- Memory ---

    def allocate(self, size: int) -> int:
        try:
            return int(self._call("cuMemAlloc", size))
        except OutOfMemoryError as error:
            free, total = self._call("cuMemGetInfo")
            raise OutOfMemoryError(
                f"{error}: {size / 1e9:.2f} GB wanted, {free / 1e9:.2f} of {total / 1e9:.2f} GB free; "
                "a smaller --batch or --context needs less"
            ) from error

    def free(self, address: int) -> None:
        self._call("cuMemFree", address)

    def upload(self, address: int, array: np.ndarray) -> None:
        data = np.ascontiguousarray(array)
        self._call("cuMemcpyHtoD", address, data.ctypes.data, data.nbytes)

    def download(self, array: np.ndarray, address: int) -> None:
        self.synchronize()
        self._call("cuMemcpyDtoH", array.ctypes.data, address, array.nbytes)

    def fill(self, address: int, byte: int, size: int) -> None:
        self._call("cuMemsetD8Async", address, byte, size, self.stream)

    def copy(self, to: int, source: int, size: int) -> None:
        self._call("cuMemcpyDtoDAsync", to, source, size, self.stream)

    # --- Time ---

    def mark(self) -> Any:
        event = self._call("cuEventCreate", self._driver.CUevent_flags.CU_EVENT_DEFAULT)
        self._call("cuEventRecord", event, self.stream)
        return event

    def milliseconds(self, start: Any, end: Any) -> float:
        return self._call("cuEventElapsedTime", start, end)

    def synchronize(self) -> None:
        """Waits for the stream, but not for a kernel that never ends."""
        deadline = time.monotonic() + LONGEST_WAIT
        while (error := self._try("cuStreamQuery", self.stream)[0]) == self._driver.CUresult.CUDA_ERROR_NOT_READY:
            if time.monotonic() > deadline:
                raise DeviceError(f"a kernel has not ended after {LONGEST_WAIT} s")
            time.sleep(1e-3)
        self._check("cuStreamQuery", error)

    def close(self) -> None:
        """Gives everything back that was made here, but for events and memory, which the context takes along."""
        for module in self._modules:
            self._call("cuModuleUnload", module)
        self._call("cuStreamDestroy", self.stream)
        self._call("cuDevicePrimaryCtxRelease", self._device)
