"""Tests that wrong arguments of every public function raise a message with the rule."""

import functools
import pathlib
import re
import traceback

import numpy as np
import pytest
from places import ROOT

import kvcache
from kvcache import ir, pictures

FUNCTION = "func.func @f(%x: memref<4xf32>, %i: index, %h: f16) { return }"
KERNEL = "gpu.module @m { gpu.func @k() kernel { gpu.return } }"
EMULATOR = "emulator:sm_90a"
PARAMS = kvcache.KVCacheParams(
    dtype="bf16",
    n_kv_heads=2,
    head_dim=8,
    page_size=4,
    total_num_layers=2,
    enable_prefix_caching=True,
    enable_kvcache_swapping_to_host=True,
    host_kvcache_swap_space_gb=2**-19,
)

WRONG = {
    "None": None,
    "1.0": 1.0,
    "nan": float("nan"),
    "no": "no",
    "nothing": "",
    "surrogate": "\udcff",
    "zero byte": "a\0b",
    "bytes": b"x",
    "True": True,
    "np.True_": np.True_,
    "1": 1,
    "np.int64(1)": np.int64(1),
    "np.float64(1)": np.float64(1),
    "-1": -1,
    "2**70": 2**70,
    "list": [],
    "mixed list": ["sm_90a", 3],
    "dict": {},
    "object": object(),
    "class": int,
    "path": pathlib.Path("not/there"),
    "array": np.zeros(2, int),
    "array without dimensions": np.array(1),
}


def make_manager(**options):
    sizes = {"max_batch_size": 2, "max_seq_len": 16, "num_pages": 6}
    return kvcache.PagedKVCacheManager(**{"params": PARAMS, **sizes, **options})


def manage(name):
    """A method of a manager with sequences in each state."""

    def call(**options):
        manager = make_manager()
        for request in ("pending", "ready", "away"):
            manager.claim(request, [1, 2, 3])
            if request != "pending":
                manager.step([request])
        manager.swap_out("away")
        return getattr(manager, name)(**options)

    return call


def call_function(name="f", x=np.zeros(4, np.float32), i=1, h=1.0):
    return kvcache.jit(FUNCTION, opt_level=0).call(name, x, i, h)


def get_kernel(**options):
    return kvcache.compile(KERNEL, opt_level=0).kernel(**options)


def draw_pages(**options):
    return pictures.draw_pages(make_manager().snapshot(), **options)


@functools.cache
def compile_key_tile():
    return kvcache.compile(ROOT / "examples/key_tile.mlir", opt_level=0)


def get_fields(**extents):
    """The fields of the descriptor of a tile that a kernel copies."""
    (kernel,) = compile_key_tile().kernels.values()
    descriptor, _ = kernel.descriptors
    return descriptor.fields(**extents)


JIT = {"filename": "a", "opt_level": 0, "bounds_checks": False}
TILE = {"dtype": "bf16", "swizzle": "128b"}
CACHE = {"num_heads": 2, "head_size": 128, "page_size": 16, "num_pages": 4}
CALLS = {
    "jit": (kvcache.jit, {"source": FUNCTION, "target": "cpu", **JIT}),
    "jit for the emulator": (
        kvcache.jit,
        {"source": FUNCTION, "target": EMULATOR, **JIT, "sanitize": True, "meter": True},
    ),
    "compile": (
        kvcache.compile,
        {"source": KERNEL, "target": "sm_90a", "format": "ptx", **JIT},
    ),
    "call": (call_function, {"name": "f", "x": np.zeros(4, np.float32), "i": 1, "h": 1.0}),
    "kernel": (get_kernel, {"name": "k", "chip": "sm_90a"}),
    "parse": (ir.Module.parse, {"source": FUNCTION, "filename": "a"}),
    "type": (ir.Type.parse, {"text": "i32"}),
    "attribute": (ir.Attribute.parse, {"text": "1 : i32"}),
    "ParamsAttr": (ir.ParamsAttr, {"num_heads": 8, "head_size": 128, "is_mla": False}),
    "PagedCacheType": (
        ir.PagedCacheType,
        {
            "dtype": "f8E4M3FN",
            "params": "#kvcache.params<num_heads = 8, head_size = 128>",
            "page_size": 64,
            "scale": "f32",
            "granularity": 128,
        },
    ),
    "RowIndicesType": (ir.RowIndicesType, {"rows": 64, "page_size": 16}),
    "TileType": (
        ir.TileType,
        {"rows": 64, "columns": 64, "dtype": "bf16", "swizzle": "swizzle_128b"},
    ),
    "TmemTileType": (ir.TmemTileType, {"rows": 64, "columns": 64, "dtype": "f32"}),
    "TMATileType": (
        ir.TMATileType,
        {"box": (64, 64), "dtype": "bf16", "swizzle": "none", "l2_promotion": 64},
    ),
    "PipeType": (
        ir.PipeType,
        {"stages": 2, "tiles": ("!kvcache.tile<64x64xbf16>",), "producers": 1},
    ),
    "FragmentType": (
        ir.FragmentType,
        {"shape": (64, 128), "dtype": "f32", "layout": "wgmma_acc", "partial": False},
    ),
    "InFlightType": (
        ir.InFlightType,
        {"shape": (16, 64), "dtype": "f32", "layout": "mma_acc"},
    ),
    "SwizzleAttr": (ir.SwizzleAttr, {"value": "none"}),
    "fields": (get_fields, {"rows": 64, "pages": 3, "page_stride": 2**20}),
    "allocate": (
        kvcache.NumPyMemory().allocate,
        {"shape": (2, 3), "dtype": np.dtype(np.float32)},
    ),
    "swizzle_granularity": (kvcache.swizzle_granularity, TILE),
    "padded_depth": (kvcache.padded_depth, {**TILE, "depth": 3}),
    "gather4_box_width": (kvcache.gather4_box_width, {**TILE, "tile_width": 3}),
    "scale_window": (kvcache.scale_window, {"dtype": "f32", "rows": 3}),
    "folded_chunks": (
        kvcache.folded_chunks,
        {**TILE, "head_size": 128, "rows": 64, "columns": 128, "chunk_inner": False},
    ),
    "tile_offset": (
        kvcache.tile_offset,
        {"shape": (64, 64), **TILE, "row": 1, "column": 1},
    ),
    "descriptor_fields": (
        kvcache.descriptor_fields,
        {"kind": "paged", **TILE, "major": "k", **CACHE, "rows": 16, "columns": 128},
    ),
    "KVCacheParams": (
        kvcache.KVCacheParams,
        {
            "dtype": "bf16",
            "n_kv_heads": 2,
            "head_dim": 8,
            "page_size": 4,
            "total_num_layers": 2,
            "n_devices": 1,
            "pipeline_parallel_degree": 1,
            "stage_id": 0,
            "cache_strategy": "paged",
            "enable_prefix_caching": True,
            "enable_kvcache_swapping_to_host": True,
            "host_kvcache_swap_space_gb": 1.0,
            "n_kv_heads_per_device": 2,
            "n_layers_per_stage": 2,
            "kvcache_quant_config": None,
            "is_mla": False,
        },
    ),
    "KVCacheQuantizationConfig": (
        kvcache.KVCacheQuantizationConfig,
        {"scale_dtype": "f32", "quantization_granularity": 4},
    ),
    "from_type": (kvcache.KVCacheParams.from_type, {"type": PARAMS.cache_type}),
    "manager": (
        make_manager,
        {"params": PARAMS, "max_batch_size": 2, "max_seq_len": 16, "memory": None},
    ),
    "manager of pages": (make_manager, {"num_pages": 4}),
    "claim": (manage("claim"), {"request": "new", "tokens": [1], "salt": b""}),
    "grow": (manage("grow"), {"request": "ready", "tokens": [1]}),
    "fork": (manage("fork"), {"request": "ready", "new_request": "new"}),
    "grow_batch": (manage("grow_batch"), {"requests": ["ready"], "tokens": [1]}),
    "commit": (manage("commit"), {"request": "ready", "tokens": [], "drafts": []}),
    "commit_batch": (
        manage("commit_batch"),
        {"requests": ["ready"], "tokens": [[]], "drafts": [[]]},
    ),
    "match": (manage("match"), {"tokens": [1], "salt": b""}),
    "pages_needed": (manage("pages_needed"), {"tokens": [1], "salt": b""}),
    "can_claim": (manage("can_claim"), {"tokens": [1], "salt": b""}),
    "truncate": (manage("truncate"), {"request": "ready", "length": 1}),
    "release": (manage("release"), {"request": "ready"}),
    "swap_out": (manage("swap_out"), {"request": "ready"}),
    "swap_in": (manage("swap_in"), {"request": "away"}),
    "inputs": (manage("inputs"), {"requests": ["pending"]}),
    "step": (manage("step"), {"requests": ["pending"]}),
    "tokens": (manage("tokens"), {"request": "ready"}),
    "draw_pages": (draw_pages, {"requests": []}),
    "draw_row": (pictures.draw_row, {"params": PARAMS}),
    "draw_tile": (pictures.draw_tile, {"shape": (64, 64), **TILE, "read": (0, 0)}),
}
CASES = [(name, argument) for name, (_, given) in CALLS.items() for argument in given]

# The required text of a message: a rule, or the known values.
RULE = re.compile(
    "expects|unknown|there is no|has no|no file|can't|is only possible|needs|at most|"
    "No such file|no room|fit|of a tile|arrays|claimed already|null byte|must be"
)
ERRORS = TypeError, ValueError, OverflowError, IndexError, OSError, MemoryError


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name, argument", CASES)
def test_wrong_arguments(name, argument):
    function, given = CALLS[name]
    function(**given)
    for wrong in WRONG.values():
        try:
            function(**{**given, argument: wrong})
        except kvcache.Error as error:
            assert str(error)
        except ERRORS as error:
            assert RULE.search(str(error)), f"{argument}={wrong!r}: {error}"
            # A deliberate check, not an accidental error.
            line = traceback.extract_tb(error.__traceback__)[-1].line or ""
            is_raised = isinstance(error, OSError) or line.startswith("raise")
            is_raised |= hasattr(error, "__tvm_ffi_error__")  # by a wrapper
            assert is_raised, f"{argument}={wrong!r}: {error}"


KINDS = {bool: [np.bool_], int: [np.int64, np.uint32, np.uint8]}
NUMBERS = [(name, argument) for name, argument in CASES if type(CALLS[name][1][argument]) in KINDS]


@pytest.mark.parametrize("name, argument", NUMBERS)
def test_numbers_of_numpy_are_numbers(name, argument):
    function, given = CALLS[name]
    value = given[argument]
    expected = repr(function(**given))
    for kind in KINDS[type(value)]:
        if isinstance(kind(0), np.bool_) or value <= np.iinfo(kind).max:
            assert repr(function(**{**given, argument: kind(value)})) == expected


@pytest.mark.parametrize("convert", [str, lambda path: str(path).encode()])
@pytest.mark.parametrize("function", [kvcache.jit, kvcache.compile, ir.Module.parse])
def test_sources_that_are_names_of_files(tmp_path, function, convert):
    path = tmp_path / "source.mlir"
    message = re.escape(
        f"expects MLIR text as source, got the name of a file: pass pathlib.Path('{path}')"
    )
    for contents in (None, FUNCTION):
        if contents:
            path.write_text(contents)
        with pytest.raises(ValueError, match=message):
            function(convert(path))
    function(path)
    other = tmp_path / "without_an_ending"
    other.write_text(FUNCTION)
    with pytest.raises(ValueError, match="got the name of a file"):
        function(str(other))


@pytest.mark.parametrize("text", ["", "module {}", "#a = 1 : i32"])
def test_sources_of_one_line(text):
    assert kvcache.jit(text, opt_level=0).functions == {}


@pytest.mark.parametrize("function", [kvcache.jit, kvcache.compile])
@pytest.mark.parametrize("value", ["no", "", None, 0, 1, 1.0, [], np.int64(1)])
def test_bounds_checks_are_true_or_false(function, value):
    with pytest.raises(ValueError, match="expects 'bounds_checks' to be True or False"):
        function("", bounds_checks=value)


@pytest.mark.parametrize("function", [kvcache.jit, kvcache.compile])
@pytest.mark.parametrize("value", [1.0, True, np.float64(2), "1", None, 4, -1])
def test_opt_levels_are_integers(function, value):
    with pytest.raises(ValueError, match="expects 'opt_level' to be 0, 1, 2 or 3, got"):
        function("", opt_level=value)


@pytest.mark.parametrize("value", [None, 1, b"sm_90a", ["sm_90a", None], [[]], object()])
def test_targets_are_chips(value):
    with pytest.raises(ValueError, match="expects 'target' to be a chip, or several, got"):
        kvcache.compile("", value)
    with pytest.raises(ValueError, match="unknown target .*; known are 'cpu'"):
        kvcache.jit("", value)
