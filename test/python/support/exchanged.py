"""A framework of tensors on a GPU, which exchanges them by DLPack's table of functions, with a stream of its own."""

import ctypes


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64), ("device", ctypes.c_int32 * 2), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_uint64), ("strides", ctypes.c_uint64), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    )  # fmt: skip


VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
MANAGE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_uint64))
GET_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64))


class Table(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2), ("previous", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
        ("manage", MANAGE), ("wrap", ctypes.c_void_p), ("view", VIEW), ("get_stream", GET_STREAM),
    )  # fmt: skip


def make_capsule(table):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(table), b"dlpack_exchange_api", None)


class Framework:
    """A class ``Tensor``, and the stream that is current in it.

    ``fails`` are the functions of the table that fail, and ``absent`` those that it lacks.
    """

    def __init__(self, absent=(), version=(1, 3)):
        self.stream, self.fails, self.calls = 0, set(), []
        self._managed = []

        def view(tensor, out):
            self.calls.append("view")
            ctypes.memmove(out, tensor.handle, ctypes.sizeof(DLTensor))
            return self._end("view")

        def manage(tensor, out):
            managed = Managed(version=(1, 0))
            ctypes.memmove(ctypes.addressof(managed.tensor), tensor.handle, ctypes.sizeof(DLTensor))
            self._managed.append(managed)
            out[0] = ctypes.addressof(managed)
            return self._end("manage")

        def get_stream(kind, number, out):
            out[0] = self.stream
            return self._end("get_stream")

        functions = {"view": VIEW(view), "manage": MANAGE(manage), "get_stream": GET_STREAM(get_stream)}
        self.table = Table(version=version, **{name: each for name, each in functions.items() if name not in absent})

        class Tensor:
            """A tensor on the memory of one of TVM-FFI, which it keeps."""

            __dlpack_c_exchange_api__ = make_capsule(self.table)
            requires_grad = False

            def __init__(self, held):
                self.held, self.handle = held, held.__chandle__() + 24
                self.shape, self.dtype = tuple(held.shape), held.dtype

            def is_neg(self):
                return False

            def is_conj(self):
                return False

            def __dlpack__(self, **options):
                return self.held.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.held.__dlpack_device__()

        self.Tensor = Tensor

    def _end(self, name):
        return -1 if name in self.fails else 0
