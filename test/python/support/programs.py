"""Sources over a cache, and their memory, for the data tests."""

import ctypes
import mmap
import subprocess
from dataclasses import dataclass, field

import devices
import ml_dtypes
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from model import FORMATS, ContinuousCache, PagedCache
from places import OPT

DTYPES = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
}


def examples(count):
    """Settings with equal examples in every run."""
    return settings(max_examples=count, deadline=None, derandomize=True, database=None)


# Sources


@dataclass(frozen=True)
class Shape:
    """The parameters of the types of a cache; without ``page_size``, a continuous one.

    With ``is_open``, the page size is only known at run time.
    """

    dtype: str = "bf16"
    heads: int = 2
    head_size: int = 8
    page_size: int | None = 4
    mla: bool = False
    is_open: bool = field(default=False, kw_only=True)

    def __str__(self):
        kind = f"p{self.page_size}" if self.page_size else "continuous"
        kind += "-open" if self.is_open else ""
        mla = "-mla" if self.mla else ""
        return f"{self.dtype}-h{self.heads}e{self.head_size}-{kind}{mla}"

    @property
    def kind(self):
        return "paged" if self.page_size else "continuous"

    @property
    def said_page_size(self):
        """The page size in the text of types."""
        return "?" if self.is_open else self.page_size

    @property
    def roles(self):
        return ("key",) if self.mla else ("key", "value")

    @property
    def row(self):
        return self.heads * self.head_size

    @property
    def quantization(self):
        """The text of types after the page size."""
        return ""

    @property
    def tensors(self):
        """The names and types of a function's parameters after the maxima, as operands."""
        return {}

    @property
    def numpy(self):
        return DTYPES[self.dtype]

    @property
    def uint(self):
        return FORMATS[self.dtype].uint

    @property
    def alignment(self):
        """The number of elements in 16 bytes, which divides distances that are not packed."""
        return 16 // self.numpy.itemsize

    def blocks_type(self, packed=False):
        tokens = self.said_page_size or "?"
        sizes = (
            f"?x{len(self.roles)}x?x{tokens}x{self.heads}x{self.head_size}x{self.dtype}"
        )
        layout = f", strided<[?, ?, ?, {self.row}, {self.head_size}, 1], offset: ?>"
        return f"memref<{sizes}{'' if packed else layout}>"

    def aliases(self, packed=False, tables=None):
        mla = ", is_mla = true" if self.mla else ""
        page = f", page_size = {self.said_page_size}" if self.page_size else ""
        page += self.quantization
        kv = f"#kvcache.params<num_heads = {self.heads}, head_size = {self.head_size}{mla}>"
        layout = "" if packed or tables else ", strided<[?, 1], offset: ?>"
        batch, columns = tables or ("?", "?")
        paged = f"memref<{batch}x{columns}xi32{layout}>"
        table = paged if self.page_size else f"memref<{batch}xi32>"
        return f"""!collection = !kvcache.{self.kind}_collection<{self.dtype}, {kv}{page}>
!cache = !kvcache.{self.kind}<{self.dtype}, {kv}{page}>
!blocks = {self.blocks_type(packed)}
!table = {table}
!lengths = memref<{batch}xi32>
"""


@dataclass
class Source:
    """A module of functions over a cache of one shape.

    ``tables`` gives the sizes of the table and the lengths, where the types have them.
    """

    shape: Shape
    packed: bool = False
    tables: tuple[int, int] | None = None
    functions: list[str] = field(default_factory=list)

    def add(self, name, parameters, body, results="", views="%k = key", layer=None):
        """Adds a function of the cache, the layer and more parameters.

        Its body ends with ``return``. It can use the collection ``%c``, the ``views`` of the layer,
        given or the argument, and constants ``%c0`` and ``%c1``.
        """
        kind = self.shape.kind
        tensors = self.shape.tensors
        more = "".join(f", %{name}: {type}" for name, (_, type) in tensors.items())
        types = "".join(f", {type}" for _, type in tensors.values())
        operands = "".join(f" {word} %{name}" for name, (word, _) in tensors.items())
        more += ", %layer: index"
        more += "".join(f", %{parameter}" for parameter in parameters)
        if layer is not None:
            layer = f"  %constant_layer = arith.constant {layer} : index\n"
        chosen = "%constant_layer" if layer else "%layer"
        made = ""
        for view in views.split(", "):
            value, role = view.split(" = ")
            made += (
                f"  {value} = kvcache.{kind}_view {role} %c[{chosen}] : !collection\n"
            )
        self.functions.append(
            f"func.func @{name}(%blocks: !blocks, %lengths: !lengths, %table: !table, "
            f"%max_seq: i32, %max_cache: i32{more}) -> ({results}) {{\n"
            f"  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n{layer or ''}"
            f"  %c = kvcache.{kind}_collection %blocks, %lengths, %table, %max_seq, "
            f"%max_cache{operands} : !blocks, !lengths, !table{types} -> !collection\n"
            f"{made}{body}\n}}\n"
        )

    @property
    def text(self):
        return self.shape.aliases(self.packed, self.tables) + "".join(self.functions)

    def compile(self, *pipelines, target="cpu", **options):
        """Compiles the text after running passes over it."""
        text = self.text
        for pipeline in pipelines:
            text = run_passes(text, pipeline)
        return devices.jit(text, target, **options)


# Passes that must not change the meaning of programs.
PIPELINES = {
    "plain": (),
    "simplified": ("canonicalize,cse,loop-invariant-code-motion,inline",),
    "hoisted": ("kvcache-hoist-lookups",),
    "simplified-hoisted": (
        "canonicalize,cse,loop-invariant-code-motion,inline,kvcache-hoist-lookups",
    ),
    "hoisted-simplified": (
        "kvcache-hoist-lookups,inline,canonicalize,cse,loop-invariant-code-motion,"
        "kvcache-hoist-lookups,canonicalize,cse,loop-invariant-code-motion",
    ),
    "ranges": (
        "inline,sccp,int-range-optimizations,kvcache-hoist-lookups,control-flow-sink,cse,"
        "int-range-optimizations,canonicalize",
    ),
    "generic": (
        "strip-debuginfo,inline,symbol-dce,mem2reg,remove-dead-values,canonicalize",
    ),
}


def run_passes(text, pipeline):
    result = subprocess.run(
        [OPT, "-", f"--pass-pipeline=builtin.module({pipeline})"],
        input=text,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


# Memory


def place(array, offset=16):
    """Makes a copy whose data start at ``offset`` modulo 64 bytes."""
    array = np.ascontiguousarray(array)
    memory = np.zeros(array.nbytes + 128, np.uint8)
    start = (offset - memory.ctypes.data) % 64
    placed = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed


def libc_mprotect(address, size):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if libc.mprotect(address, size, 0) != 0:  # PROT_NONE
        raise OSError(ctypes.get_errno(), "mprotect")


class Guarded:
    """Memory between two inaccessible pages."""

    def __init__(self, num_bytes):
        page = mmap.PAGESIZE
        size = -(-num_bytes // page) * page
        self.mapping = mmap.mmap(-1, size + 2 * page)
        memory = np.frombuffer(self.mapping, np.uint8)
        libc_mprotect(memory.ctypes.data, page)
        libc_mprotect(memory.ctypes.data + page + size, page)
        self.memory = memory[page : page + size]

    def at_end(self, array):
        """Makes a copy that ends where the guard begins."""
        place = self.memory[self.memory.size - array.nbytes :]
        return self._copy(array, place)

    def at_start(self, array):
        """Makes a copy that begins where the guard ends."""
        return self._copy(array, self.memory[: array.nbytes])

    def _copy(self, array, memory):
        copy = memory.view(array.dtype).reshape(array.shape)
        copy[...] = array
        return copy


def guard(array, where):
    return getattr(Guarded(array.nbytes), where)(np.ascontiguousarray(array))


def sparse(num_elements, dtype):
    """Makes zeros that take memory only when they are read or written."""
    size = num_elements * np.dtype(dtype).itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype)


def padded_rows(table):
    """Copies a table to rows that begin at 32 bytes: chips read up to 8 entries at once."""
    padded = np.zeros((len(table), -(-table.shape[1] // 8) * 8), table.dtype)
    padded = padded[:, : table.shape[1]]
    padded[...] = table
    return padded


def random_encodings(rng, count, dtype):
    """Draws random bits, including special values."""
    uint = FORMATS[dtype].uint
    bits = rng.integers(0, 1 << 8 * uint.itemsize, count, dtype=np.uint64).astype(uint)
    special = [0, 1, 0x7F800001, 0xFF800000, 0x7FC00000, 0x80000000, 0xFFFFFFFF]
    some = rng.random(count) < 0.1
    if dtype == "f32":
        bits[some] = rng.choice(np.array(special, uint), int(some.sum()))
    return bits


# Caches


@st.composite
def placements(draw, shape, pages, layers, tokens, row_padding=True):
    """Draws distances of a layout: any order of pages, roles and layers, padded or not.

    Returns them and the number of elements that they span. With ``row_padding``, pages are a whole
    number of rows apart, without it a whole number of 16 bytes.
    """
    order = draw(st.permutations(range(3)))
    sizes = (pages, len(shape.roles), layers)
    step = np.lcm(shape.row, shape.alignment) if row_padding else shape.alignment
    distances = [0, 0, 0]
    distance = tokens * shape.row
    for dimension in reversed(order):
        distance += int(step) * draw(st.sampled_from((0, 0, 1, 2, 5)))
        distances[dimension] = distance
        distance *= sizes[dimension]
    return tuple(distances), distance


def small_cache(shape, batch=2, columns=3, layers=2, word=None, seed=7, spare_pages=1):
    """A packed cache of random bits; ``word`` is every length, maximum and table entry.

    Without a word, the table names each page once, except the last ``spare_pages``.
    """
    rng = np.random.default_rng(seed)
    tokens = shape.page_size or 3 * columns
    table_shape = (batch, columns) if shape.page_size else (batch,)
    used = int(np.prod(table_shape))
    pages, roles = used + spare_pages, len(shape.roles)
    layer = tokens * shape.row
    memory = random_encodings(rng, pages * roles * layers * layer, shape.dtype)
    table = rng.permutation(used).astype(np.uint32).reshape(table_shape)
    make = PagedCache if shape.page_size else ContinuousCache
    return make(
        place(memory),
        0,
        (pages, roles, layers, tokens, shape.heads, shape.head_size),
        (roles * layers * layer, layers * layer, layer),
        table if word is None else np.full_like(table, word),
        np.full(batch, word or 0, np.uint32),
        word or 0,
        word or 0,
    )


def page_span(cache):
    """The elements from a page's first to its last, over all roles and layers."""
    _, roles, layers, tokens, heads, head_size = cache.shape
    _, role, layer = cache.distances
    return (roles - 1) * role + (layers - 1) * layer + tokens * heads * head_size


@st.composite
def caches(draw, shape, max_tokens=24, min_tokens=1, row_padding=True, ids=None):
    """Draws small caches of random bits, with each page in use at most once.

    ``ids`` gives other entries for the table, for programs that don't follow them: most of the
    memory is missing then.
    """
    batch, layers = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    if shape.page_size:
        tokens = shape.page_size
        least, most = -(-min_tokens // tokens), -(-max_tokens // tokens)
        columns = draw(st.integers(least, max(least, most)))
        table_shape = (batch, columns)
    else:
        tokens = draw(st.integers(min_tokens, max_tokens))
        table_shape = (batch,)
    used = int(np.prod(table_shape))
    # Tests query any id, and arrays keep no distance along a dimension of one.
    pages = max(used + draw(st.integers(0, 2)), 1 if ids is None else 2)
    distances, span = draw(placements(shape, pages, layers, tokens, row_padding))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    if ids is None:
        entries = rng.permutation(pages)[:used].astype(np.uint32)
    else:
        entries = np.array([draw(ids) for _ in range(used)], np.uint32)
    base = shape.alignment * draw(st.integers(0, 3))
    if ids is not None:
        span = 1
    memory = place(random_encodings(rng, base + span, shape.dtype))
    table = entries.reshape(table_shape)
    if draw(st.booleans()) and shape.page_size:
        # A slice of a wider array, whose other entries name no page.
        wide = np.full((batch, table_shape[1] + 5), 0xDEADBEEF, np.uint32)
        wide[:, 2:-3] = table
        table = wide[:, 2:-3]
    word = st.integers(0, 2**32 - 1)
    make = PagedCache if shape.page_size else ContinuousCache
    return make(
        memory,
        base,
        (pages, len(shape.roles), layers, tokens, shape.heads, shape.head_size),
        distances,
        table,
        np.array([draw(word) for _ in range(batch)], np.uint32),
        draw(word | st.just(0)),
        draw(word | st.just(0)),
    )


def everything(cache):
    """Indices (b, h, t, d) of all elements, for an array [batch, tokens, heads, size]."""
    view = cache.view(0, 0)
    sizes = (len(cache.lengths), view.tokens(), view.heads, view.head_size)
    b, t, h, d = np.ix_(*map(np.arange, sizes))
    return sizes, (b, h, t, d)


@st.composite
def places(draw, cache):
    view = cache.view(0, 0)
    role = draw(st.integers(0, cache.shape[1] - 1))
    layer = draw(st.integers(0, cache.shape[2] - 1))
    b = draw(st.integers(0, len(cache.lengths) - 1))
    t = draw(st.integers(0, view.tokens() - 1))
    h = draw(st.integers(0, view.heads - 1))
    return role, layer, b, h, t


def max_tokens(shape):
    return min(4 * (shape.page_size or 20), 1024 // shape.row + (shape.page_size or 5))


SHAPES = [
    Shape("bf16", 2, 8, 3),
    Shape("f8E4M3FN", 1, 16, 1),
    Shape("f32", 2, 4, 48),
    Shape("f16", 3, 8, None),
]


def is_optimized(shape, pipeline, every):
    """Some shapes for each pipeline, and each shape for some: optimizing takes longest."""
    return (SHAPES.index(shape) + list(PIPELINES).index(pipeline)) % every == 0
