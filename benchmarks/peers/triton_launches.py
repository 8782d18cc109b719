"""How the functions of triton_kernels.py are launched. It needs no Triton, as the machine with the GPU may have none.

Blocks are as large as those of the CUDA C++ kernels.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """The parameters that a function is specialized for.

    Attributes:
        function: Its name.
        arguments: Each with Triton's type: a number, or the name that it has as a parameter of our kernels.
        constants: By the names of the parameters, which follow the arguments.
        warps: The number of warps of a block.
    """

    function: str
    arguments: tuple[tuple[str | int, str], ...]
    constants: dict[str, int]
    warps: int

    @property
    def signature(self) -> list[str]:
        """The types of all parameters."""
        return [type for _, type in self.arguments] + ["constexpr"] * len(self.constants)


_CACHE = {"P": 16, "H": 8, "D": 128}
_TABLES = (("lut", "*i32"), ("lengths", "*i32"))
_KEYS = (("layer", "i32"), (0, "i32"), ("blocks.size2", "i32"))
_GATHERED = (*_TABLES, ("out", "*bf16"), ("lut.size1", "i32"), ("out.size1", "i32"), *_KEYS)
_FP8 = (("blocks", "*fp8e4nv"), ("scales", "*fp32"))
_NEW = (("new", "*bf16"), ("token_sequences", "*i32"), ("token_positions", "*i32"), ("lut", "*i32"))
_PARTS = (("part_o", "*fp32"), ("part_m", "*fp32"), ("part_l", "*fp32"))
_ATTENTION = (
    *(("q", "*bf16"), ("blocks", "*bf16"), *_TABLES, *_PARTS, ("lut.size1", "i32"), ("blocks.size2", "i32")),
    *(("layer", "i32"), ("chunk", "i32"), ("part_o.size2", "i32"), ("scale_log2", "fp32")),
)
_QUERIES = {"P": 16, "HKV": 8, "GQ": 8, "D": 128}
_LATENT_SIZE = 576

LAUNCHES = {
    launch.function: launch
    for launch in (
        Launch("gather", (("blocks", "*bf16"), *_GATHERED), {**_CACHE, "BT": 8}, 8),
        Launch("gather_fp8", (*_FP8, *_GATHERED), {**_CACHE, "G": 64, "BT": 8}, 8),
        Launch(
            "append_fp8",
            (*_NEW, *_FP8, ("new.size1", "i32"), ("lut.size1", "i32"), ("blocks.size2", "i32"), ("layer", "i32")),
            {**_CACHE, "G": 64, "BT": 2},
            8,
        ),
        Launch("decode", _ATTENTION, {**_QUERIES, "BN": 16}, 4),
        Launch("decode_dot", _ATTENTION, {**_QUERIES, "BN": 32}, 4),
        Launch(
            "sparse_rows",
            (("blocks", "*bf16"), ("ids", "*i32"), ("columns", "*fp32"), ("ids.size1", "i32"), (_LATENT_SIZE, "i32")),
            {"BN": 64},
            4,
        ),
        Launch(
            "sparse_rows_gather4",
            (("rows", "tensordesc<bf16[1, 64]>"), ("ids", "*i32"), ("columns", "*fp32"), ("ids.size1", "i32")),
            {"BN": 64},
            4,
        ),
    )
}
"""By function."""
