"""A stand-in for ``cuda.bindings.driver`` with host memory, kernels in Python and invented times."""

import ctypes

import numpy as np

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE, NOT_READY, ILLEGAL_ADDRESS = 0, 1, 2, 100, 600, 700


class Names:
    """An enumeration whose values are their names."""

    def __getattr__(self, name):
        return name


class Results:
    CUDA_SUCCESS = SUCCESS
    CUDA_ERROR_INVALID_VALUE = INVALID_VALUE
    CUDA_ERROR_OUT_OF_MEMORY = OUT_OF_MEMORY
    CUDA_ERROR_NOT_READY = NOT_READY


def memory(address, dtype, count):
    """Views ``count`` elements of memory as an array."""
    size = np.dtype(dtype).itemsize * count
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype)


class FakeDriver:
    """Records the name of every call in ``calls``, and launches in ``launches``.

    ``kernels`` has the sizes of the parameters and a function of grid and arguments for each name,
    ``costs`` the milliseconds of a launch. ``failures`` has an error for a function's name, from
    its n-th call on.
    """

    CUresult = Results
    CUstream_flags = CUevent_flags = CUdevice_attribute = CUfunction_attribute = Names()
    CUtensorMapDataType = CUtensorMapInterleave = CUtensorMapSwizzle = Names()
    CUtensorMapL2promotion = CUtensorMapFloatOOBfill = Names()
    cuuint64_t = cuuint32_t = int

    def __init__(self, kernels=None, costs=None, capability=(9, 0), name=b"NVIDIA H200"):
        self.kernels, self.costs = kernels or {}, costs or {}
        self.calls, self.launches, self.tensor_maps, self.failures = [], [], [], {}
        self.clock = 0.0
        self.name = name
        self.attributes = {
            "COMPUTE_CAPABILITY_MAJOR": capability[0], "COMPUTE_CAPABILITY_MINOR": capability[1],
            "MULTIPROCESSOR_COUNT": 132, "L2_CACHE_SIZE": 1 << 14,
            "MEMORY_CLOCK_RATE": 1000, "GLOBAL_MEMORY_BUS_WIDTH": 64,
        }
        self._allocated = {}

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: self._call(name, arguments)

    def _call(self, name, arguments):
        self.calls.append(name)
        error, since = self.failures.get(name, (SUCCESS, 0))
        if error and self.calls.count(name) >= since:
            return (error, None)
        result = getattr(self, f"_{name}", lambda *_: name)(*arguments)
        return (SUCCESS, *result) if isinstance(result, tuple) else (SUCCESS, result)

    @property
    def allocated_bytes(self):
        return sum(array.nbytes for array in self._allocated.values())

    def _cuDeviceGetName(self, length, device):
        return self.name + b"\0rest"

    def _cuDeviceGetPCIBusId(self, length, device):
        return b"0000:01:00.0\0"

    def _cuDeviceTotalMem(self, device):
        return 1 << 37

    def _cuDriverGetVersion(self):
        return 13000

    def _cuDeviceGetAttribute(self, code, device):
        return self.attributes[code.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def _cuMemGetInfo(self):
        return (1_000_000_000, 2_000_000_000)

    def _cuMemAlloc(self, size):
        array = np.zeros(size + 256, np.uint8)
        address = -(-array.ctypes.data // 256) * 256
        self._allocated[address] = array
        return address

    def _cuMemFree(self, address):
        del self._allocated[address]

    def _cuMemcpyHtoD(self, to, source, size):
        ctypes.memmove(to, source, size)

    _cuMemcpyDtoH = _cuMemcpyHtoD

    def _cuMemcpyDtoDAsync(self, to, source, size, stream):
        ctypes.memmove(to, source, size)
        self.clock += self.costs["copy"]

    def _cuMemsetD8Async(self, address, byte, size, stream):
        ctypes.memset(address, byte, size)

    def _cuModuleGetFunction(self, module, name):
        return name.decode()

    def cuFuncGetParamInfo(self, kernel, index):
        sizes, _ = self.kernels[kernel]
        return (SUCCESS, 8 * index, sizes[index]) if index < len(sizes) else (INVALID_VALUE, 0, 0)

    def _cuLaunchKernel(self, kernel, *rest):
        grid, block, (shared, _, parameters, _) = rest[:3], rest[3:6], rest[6:]
        sizes, run = self.kernels[kernel]
        pointers = (ctypes.c_void_p * len(sizes)).from_address(parameters)
        arguments = [ctypes.string_at(pointer, size) for pointer, size in zip(pointers, sizes)]
        self.launches.append((kernel, grid, block, shared))
        self.clock += self.costs[kernel]
        run(grid, arguments)

    def _cuTensorMapEncodeTiled(self, *fields):
        self.tensor_maps.append(fields)
        return type("TensorMap", (), {"opaque": [7] * 16})

    def _cuEventCreate(self, flags):
        return [None]

    def _cuEventRecord(self, event, stream):
        event[0] = self.clock

    def _cuEventElapsedTime(self, start, end):
        return end[0] - start[0]
