"""The works that compilers are compared on, and where each has its source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from command import CHIPS
from provenance import FOLDER


@dataclass(frozen=True)
class Work:
    """A task with pages of 16 tokens and 8 KV heads of 128, or MLA rows of 576 elements.

    Attributes:
        name: Also that of the CUDA C++ source, of its kernel, and of the function in Triton.
        title: The function, in a few words.
        sass_ratio: The most machine code that ours may have, as a part of nvcc's.
        source: The name of our source in ``kernels``.
        dynamic_shared: Bytes of shared memory that the CUDA C++ kernel gets from its launch.
        chips: The targets.
    """

    name: str
    title: str
    sass_ratio: float
    source: str
    dynamic_shared: int = 0
    chips: tuple[str, ...] = CHIPS

    @property
    def mlir(self) -> Path:
        return FOLDER / "kernels" / f"{self.source}.mlir"

    @property
    def cuda(self) -> Path:
        return FOLDER / "peers" / f"{self.name}.cu"


_TILES = 2 * 64 * 576 * 2
"""Bytes of two tiles of 64 rows, bf16."""

WORKS = {
    work.name: work
    for work in (
        Work("gather", "a layer's tokens, bf16, into an array", 0.75, "gather"),
        Work("gather_dynamic", "the same, shapes known at run time", 0.75, "gather_dynamic"),
        Work("gather_fp8", "fp8 tokens with f32 scales into a bf16 array", 0.85, "gather_fp8"),
        Work("append_fp8", "new bf16 tokens, quantized into the pages", 1.0, "append_fp8"),
        Work("decode", "split decode attention, bf16, 8 queries a head", 1.0, "decode"),
        Work("sparse_rows", "rows by id into swizzled tiles, cp.async", 1.0, "sparse_rows", _TILES),
        Work("sparse_rows_gather4", "the same by gather4", 1.0, "sparse_rows", _TILES, ("sm_100a",)),
    )
}
