from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .errors import RawDiagnostic

def access_bytes(chip: str) -> int:
    """Returns the bytes of a chip's widest access of global memory."""

def operand_names(op: str) -> tuple[list[str], bool] | None:
    """Returns the names of an op's operands, and whether it has segment sizes.

    None for an op outside of the dialect. A name ends in ``?`` if the operand is
    optional, and in ``*`` if it may be several.
    """

def enum_words(attribute: str) -> dict[str, str]:
    """Returns the words of an attribute of the dialect's ops, such as ``"role"``, with
    the text of the attribute that each means; none if it is no enum."""

def workspace_bytes(query_heads: int, value_size: int, splits: int, rows: int) -> tuple[int, int]:
    """Returns the bytes of attention's workspace per sequence, and those after all."""

def chip_features(chip: str) -> list[str]:
    """Returns the features of a chip by their names in diagnostics."""

def set_leak_warnings(on: bool) -> None:
    """Sets whether leaked objects of the extension are reported at process end."""

def chips() -> list[str]: ...
def compile(
    source: bytes,
    filename: str,
    chips: list[str],
    opt_level: int,
    bounds_checks: bool,
    toolkit: str,
    tuning: str = "",
) -> tuple[list[tuple[str, str, bytes, str]] | None, list[RawDiagnostic]]:
    """Returns module, chip, PTX and JSON properties of each object; None on errors."""

def jit(
    source: bytes,
    filename: str,
    passes: str,
    opt_level: int,
    device: str,
    keeps_image: bool,
    is_of_kernels: bool = False,
) -> tuple[JIT | None, list[RawDiagnostic]]:
    """Returns the compiled functions, or None on errors.

    ``device`` is ``"emulator"``, ``"cuda"``, or empty for the CPU. A source of kernels
    may be LLVM IR; then ``functions`` describes the kernels.
    """

def load_image(image: bytes, device: str) -> tuple[JIT | None, list[RawDiagnostic]]:
    """Returns the functions of the image of a JIT, or None on errors.

    It must be from this extension, for the same device and an equal host.
    """

def build_id() -> bytes:
    """Returns the linker's identifier of this build; empty if it wrote none."""

def host() -> tuple[str, str, str]:
    """Returns what images depend on: LLVM's version, processor and features.

    Raises ``ValueError`` if ``KVCACHE_CPU`` names no level.
    """

def cpu_levels() -> list[tuple[str, int, bool, str]]:
    """Returns the levels of processors, from the lowest on: name, bits of vectors,
    whether there are fused multiply-adds, and matrix instructions.

    An architecture may have none.
    """

def cpu_level() -> str:
    """Returns the level of this processor that libraries prefer; empty if there are no
    levels."""

def compile_object(
    source: bytes,
    filename: str,
    passes: str,
    opt_level: int,
    level: str,
    optional: bool,
) -> tuple[tuple[bytes, list[str]] | None, list[RawDiagnostic]]:
    """Returns an object file for a shared library, or None on errors.

    With a level, it has the bodies of wrappers of these names. If it is optional, and
    no function has the level's matrix instructions, it is empty.
    """

def compile_selectors(wrappers: list[str], levels: list[str]) -> bytes:
    """Returns an object file of wrappers that call their bodies for these levels."""

def request_tiles() -> bool:
    """Asks the kernel for AMX tiles, and returns whether this process may use them."""

def has_threads() -> bool:
    """Whether there is an OpenMP library, whose threads may share a loop."""

def helper_library() -> str:
    """Returns the path of the library of MLIR that compiled code may call."""

def parse_type(
    text: bytes,
) -> tuple[tuple[str, str, dict[str, Any] | None] | None, list[RawDiagnostic]]:
    """Returns class, text and fields of a type, or None on errors.

    The fields are the arguments of its constructor: numbers, text, types and attributes
    like this one, and lists of them. They are None if the class is ``Type``.
    """

def parse_attribute(
    text: bytes,
) -> tuple[tuple[str, str, dict[str, Any] | None] | None, list[RawDiagnostic]]:
    """Returns class, text and fields of an attribute, or None on errors."""

def make_type(
    name: str, fields: dict[str, Any]
) -> tuple[str | None, list[RawDiagnostic]]:
    """Returns the text of the type with the fields; None on errors.

    Types and attributes among the fields are text.
    """

def make_attribute(
    name: str, fields: dict[str, Any]
) -> tuple[str | None, list[RawDiagnostic]]:
    """Returns the text of the attribute with the fields; None on errors."""

def parse_module(
    source: bytes, filename: str
) -> tuple[Module | None, list[RawDiagnostic]]:
    """Returns the parsed and verified module, or None on errors."""

def plan_attention(
    source: bytes, filename: str, chip: str
) -> tuple[list[tuple[str, str, str]] | None, list[RawDiagnostic]]:
    """Plans the attention ops of a source for a chip; None on errors.

    Returns the shape of each op, its complete config, and the fields of it that decide
    the bits of results.
    """

def tensor_map(
    kind: str, sizes: dict[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, str | None]:
    """Returns dims, outer strides, box, offset, and the first limit that is broken."""

def tile_offset(
    rows: int, columns: int, element_bytes: int, span: int, row: int, column: int
) -> int: ...
def padded_depth(element_bytes: int, span: int, depth: int) -> int: ...
def gather4_box_width(element_bytes: int, width: int, span: int) -> int: ...
def scale_window(element_bytes: int, rows: int) -> int: ...
def folded_chunks(
    element_bytes: int,
    span: int,
    head_size: int,
    rows: int,
    columns: int,
    box_rows: int,
    chunk_inner: bool,
) -> int: ...
def broken_limit(
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    element_bytes: int,
    span: int,
    offset: int,
) -> str | None: ...

class Module:
    def text(self) -> str: ...
    def bytecode(self) -> bytes: ...
    def functions(self) -> list[tuple[str, list[tuple[str, str]], list[str]]]:
        """Returns path, arguments and types of results of each function."""

class Wrapper:
    """A function for TVM-FFI, to be called through ``caller`` with this as its handle.

    ``caller`` is an address. It releases the interpreter's lock during the call.
    """

    caller: ClassVar[int]

class JIT:
    @property
    def functions(self) -> str:
        """The public functions with their arguments and results, as a JSON array."""

    @property
    def image(self) -> bytes:
        """Returns the image for ``load_image``; empty unless ``jit`` kept it."""

    def wrapper(self, name: str) -> Wrapper:
        """Returns the TVM-FFI wrapper of a function, which keeps the code alive."""

    @property
    def kernels(self) -> list[tuple[str, str, int]]:
        """Returns the kernels that the functions launch.

        Each has the name of its module, its own name, and the address of the
        ``KVCacheBinary`` of the module.
        """

    @property
    def binaries(self) -> dict[str, int]:
        """Returns the addresses of ``KVCacheBinary`` of a source's modules."""

    def load(self, device: int) -> str:
        """Loads the kernels; returns a message on failure, else an empty one."""

    def take_meter(self) -> str:
        """Returns the emulator's meters of this thread's launches.

        They are a JSON array with one object per launch since the last call; empty for
        modules that don't run on the emulator.
        """

class NativeFunction:
    """A function without results, which is called without TVM-FFI."""

def native_function(
    jit: JIT, name: str, kinds: bytes, precisions: bytes, written: bytes, is_on_gpu: bool
) -> NativeFunction:
    """Returns a function of a module, for ``plain_method`` and ``checked_call``.

    Args:
        jit: The module.
        name: The name of the function.
        kinds: A letter for each argument: m for a memref, i for an integer, f for a
            float.
        precisions: The checks of PyTorch's tensors, as for ``needs_adapting``.
        written: 1 for each argument that the function writes to.
        is_on_gpu: Whether arrays are memory of a GPU. Then the function runs on the
            current stream of the framework of the first array that has one.
    """

def register_native(
    array: type, dtypes: dict[int, tuple[int, int]], error: type[Exception]
) -> None:
    """Registers NumPy's type of arrays, and the exception of failed checks.

    ``dtypes`` are DLPack's code and the bits by the number of a dtype.
    """

def checked_call(
    function: NativeFunction,
    parameters: Sequence[tuple[str, int, str, int]],
    operands: str,
    form: str,
    form_without_table: str,
    layer: int,
    offsets: int,
    needs_pages: bool,
    workspace_bytes: tuple[int, int],
    place_scale: Callable[[float, int, int, int | None], object],
    find_workspace: Callable[[int, int, int | None], object] | None,
) -> Callable[..., bool]:
    """Returns a function of inputs, a layer, and the parameters of an operation.

    It returns whether the function has run: not if a check of the arguments may fail.

    Args:
        function: The function of the operation.
        parameters: The name, the argument (-1 if it must be None), the kind and the
            elements of each parameter; see ``ParameterKind`` in CheckedCalls.h.
        operands: A letter for each operand of the inputs: c for a tensor of the cache,
            n for lengths, t for a table, x for its index, i for a number.
        form: The form of inputs, as in ``StepInputs._operands``.
        form_without_table: The form of inputs without a table; empty for none.
        layer: The argument of the layer; -1 if each layer has operands of its own.
        offsets: The argument of the row offsets.
        needs_pages: Whether sequences must have pages for all tokens.
        workspace_bytes: The bytes of a workspace for each sequence, and those for all.
        place_scale: A function of a number, the elements, the number of a GPU, and the
            stream, which returns the array there.
        find_workspace: A function of the bytes, the number of the GPU, and the stream,
            which returns the workspace.

    A stream is None if no framework has one.
    """

def bound_call(
    checked: Callable[..., bool],
    inputs: object,
    layer: object,
    given: dict[str, object],
    positional: int,
    fallback: Callable[..., Any],
    explain: Callable[..., Any],
) -> Callable[..., None]:
    """Returns a function of the parameters of a checked call, by place or by name.

    Args:
        checked: A result of ``checked_call``.
        inputs: The inputs of the step.
        layer: The layer.
        given: Values of parameters that calls need not give.
        positional: The number of first parameters that calls may give by place.
        fallback: A function of the same parameters, for calls that have not run.
        explain: A function of inputs, layer and ``CheckError``, which raises.
    """

def plain_method(method: Callable[..., Any], types: dict[type, bool]) -> Any:
    """Returns a method ``call(name, *args)`` that needs no Python in the plain case.

    The object has its functions in ``_plain``, by name: a native function or one of
    TVM-FFI, the precisions of its arguments, and whether it has several results; then
    the one of TVM-FFI, for calls that the native one refuses. Where ``needs_adapting`` is false,
    the function is called as it is. Otherwise, or if that raises ``TypeError`` or
    ``BufferError``, ``method`` is called.
    """

def needs_adapting(
    args: tuple[object, ...], types: dict[type, bool], precisions: bytes
) -> bool:
    """Returns whether arguments must be checked before TVM-FFI gets them.

    ``types`` has the types that TVM-FFI accepts directly, with True for PyTorch's
    tensors, whose memory may not be their value. ``precisions`` has a number per
    argument: 0 for integers, which need no check; 1 for floats, which may require a
    gradient; 2 for floats that can be parts of complex numbers, so also negated views.
    """
