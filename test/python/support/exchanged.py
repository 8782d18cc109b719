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


def find_function(name):
    """The address of a function of Python's C interface."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


# An error can't leave a callback of ctypes. So functions that fail are some of Python's, which raise for
# these arguments and return -1: the tensor is no list, and the number of the device, 0, is no key.
FAILURES = {"view": VIEW(find_function("PyList_Append")), "get_stream": GET_STREAM(find_function("PyObject_DelItem"))}


def make_capsule(table):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(table), b"dlpack_exchange_api", None)


class Framework:
    """A class ``Tensor``, and the stream that is current in it.

    ``absent`` are the functions that the table lacks, and ``failing`` those that raise.
    """

    def __init__(self, absent=(), failing=(), version=(1, 3)):
        self.stream, self.calls = 0, []
        self._managed = []

        def view(tensor, out):
            self.calls.append("view")
            ctypes.memmove(out, tensor.handle, ctypes.sizeof(DLTensor))
            return 0

        def manage(tensor, out):
            managed = Managed(version=(1, 0))
            ctypes.memmove(ctypes.addressof(managed.tensor), tensor.handle, ctypes.sizeof(DLTensor))
            self._managed.append(managed)
            out[0] = ctypes.addressof(managed)
            return 0

        def get_stream(kind, number, out):
            out[0] = self.stream
            return 0

        functions = {"view": VIEW(view), "manage": MANAGE(manage), "get_stream": GET_STREAM(get_stream)}
        functions |= {name: FAILURES[name] for name in failing}
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
