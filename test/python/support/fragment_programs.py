"""Programs of fragments: a kernel of one team copies its arguments to tiles, computes fragments, and stores these to
tiles, of which its results are copies.
"""

import ml_dtypes
import numpy as np

import kvcache

DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
TEAMS = {"mma": (16, 32, ("emulator:sm_80", "emulator:sm_120")), "wgmma": (64, 128, ("emulator:sm_90a",))}
# Fragments of tensor memory have 128 rows, or 64. A warpgroup can have all 128.
TMEM_TEAMS = {
    "tmem_acc": (128, 256, ("emulator:sm_100a",)),
    "tmem_acc64": (64, 128, ("emulator:sm_103a",)),
    "tmem_row": (128, 128, ("emulator:sm_100a",)),
}
# The rows of transposed fragments are the columns of wgmma: 8 to 256.
OTHER_TEAMS = {**TMEM_TEAMS, "wgmma_acc_t": (24, 128, ("emulator:sm_90a",))}
PAIRS = ["mma_a16_pairs", "mma_acc_pairs", "mma_a16_quads", "mma_acc_quads"]
LAYOUTS = ["mma_acc", "mma_a16", "wgmma_acc", "wgmma_a16", "wgmma_a8", *PAIRS, *OTHER_TEAMS]
SWIZZLES = {32: "swizzle_32b", 64: "swizzle_64b", 128: "swizzle_128b"}


def get_team(layout):
    return OTHER_TEAMS.get(layout) or TEAMS[layout.partition("_")[0]]


def get_columns(layout, least):
    """At least so many columns that the layout may have."""
    unit = 64 if layout == "wgmma_acc_t" else 32 if layout.endswith("quads") else 8
    return -(-least // unit) * unit


def make_scratch(layout, element):
    """The tile by which warps that share rows reduce: its allocation, and its mention and type in `reduce`."""
    if layout != "wgmma_acc_t":
        return "", "", ""
    type = f"!kvcache.tile<4x{get_team(layout)[0]}x{element}>"
    return f"%scratch = kvcache.alloc_tile : {type}", "across %scratch", f", {type}"


def choose_element(layout, a16, a8, acc):
    """An element type for each kind of layout: operands of 16 and of 8 bits, and accumulators."""
    return a16 if "a16" in layout else a8 if "a8" in layout else acc


def get_element(dtype):
    return next(name for name, known in DTYPES.items() if np.dtype(known) == dtype)


class Tile:
    """A tile of a matrix, and its memref."""

    def __init__(self, name, shape, element, swizzle="none"):
        self.name, self.shape, self.element = name, shape, element
        sides = "x".join(map(str, shape))
        self.memref = f"memref<{sides}x{element}>"
        self.type = f"!kvcache.tile<{sides}x{element}{'' if swizzle == 'none' else f', {swizzle}'}>"

    @classmethod
    def of(cls, name, array, swizzle):
        return cls(name, array.shape, get_element(array.dtype), swizzle)

    def copy(self, to_tile, threads):
        """The text that copies the memref to the tile, or back."""
        name, columns = self.name, self.shape[1]
        if to_tile:
            move = f"""%copied = memref.load %{name}_memory[%copy_row, %copy_column] : {self.memref}
        kvcache.tile_store %copied, %{name}[%copy_row, %copy_column] : {self.element}, {self.type}"""
        else:
            move = f"""%copied = kvcache.tile_load %{name}[%copy_row, %copy_column] : {self.type} -> {self.element}
        memref.store %copied, %{name}_memory[%copy_row, %copy_column] : {self.memref}"""
        return f"""
      %{name}_size = arith.constant {np.prod(self.shape)} : index
      %{name}_columns = arith.constant {columns} : index
      scf.for %copy = %thread to %{name}_size step %threads {{
        %copy_row = arith.divui %copy, %{name}_columns : index
        %copy_column = arith.remui %copy, %{name}_columns : index
        {move}
      }}"""


def run(target, threads, inputs, results, body, arguments=(), swizzle="none", aliases=""):
    """Runs a body that stores fragments to the tiles of results. Inputs have a swizzle, or each its own."""
    swizzles = swizzle if isinstance(swizzle, dict) else dict.fromkeys(inputs, swizzle)
    tiles = [Tile.of(name, array, swizzles.get(name, "none")) for name, array in inputs.items()]
    outs = [Tile(name, shape, element) for name, (shape, element) in results.items()]
    memrefs = ", ".join(f"%{tile.name}_memory: {tile.memref}" for tile in [*tiles, *outs])
    others = "".join(f", %{name}: {type}" for name, type, _ in arguments)
    passed = ", ".join(
        [f"%{tile.name}_memory : {tile.memref}" for tile in [*tiles, *outs]]
        + [f"%{name} : {type}" for name, type, _ in arguments]
    )
    text = f"""{aliases}
module attributes {{gpu.container_module}} {{
  gpu.module @kernels {{
    gpu.func @kernel({memrefs}{others}) kernel {{
      %thread = gpu.thread_id x
      %threads = arith.constant {threads} : index
      %c0 = arith.constant 0 : index
      {"".join(f'''
      %{tile.name} = kvcache.alloc_tile : {tile.type}''' for tile in [*tiles, *outs])}
      {"".join(tile.copy(True, threads) for tile in tiles)}
      nvvm.fence.proxy {{kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}}
      gpu.barrier
      {body}
      gpu.barrier
      {"".join(tile.copy(False, threads) for tile in outs)}
      gpu.return
    }}
  }}
  func.func @main({memrefs}{others}) {{
    %c1 = arith.constant 1 : index
    %threads = arith.constant {threads} : index
    gpu.launch_func @kernels::@kernel blocks in (%c1, %c1, %c1) threads in (%threads, %c1, %c1) args({passed})
    return
  }}
}}
"""
    if "wgmma" not in text:
        text = "\n".join(line for line in text.splitlines() if "fence.proxy" not in line)
    arrays = [np.zeros(tile.shape, DTYPES[tile.element]) for tile in outs]
    program = kvcache.jit(text, target=target, opt_level=0)
    program.call("main", *inputs.values(), *arrays, *(value for _, _, value in arguments))
    return arrays


def fragment(layout, *shape, element, partial=False):
    sides = "x".join(map(str, shape))
    name = "tmem_acc" if layout == "tmem_acc64" else layout
    return f"!kvcache.fragment<{sides}x{element}, {name}{', partial' if partial else ''}>"


def cases():
    for layout in LAYOUTS:
        for target in get_team(layout)[2]:
            yield layout, target


def draw(shape, dtype, seed=0):
    numbers = np.random.default_rng(seed).normal(size=shape)
    if np.dtype(dtype).kind in "iu":
        numbers *= 10
    return numbers.astype(dtype)
