"""The works: their inputs, what is right, and how each contender's kernel is launched."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from peers.triton_launches import LAUNCHES, Launch

from . import inputs, references
from .cuda_device import Grid
from .inputs import HEADS, LATENT_SIZE, Case, Sizes
from .references import Arrays

Compare = Callable[[Arrays, Arrays], "str | None"]


def _blocks(count: int, size: int) -> int:
    return -(-count // size)


@dataclass(frozen=True)
class CudaPeer:
    """A kernel of ``benchmarks/peers``, which takes one struct, and before it a descriptor of the rows if it gathers
    them by tensor copies. ``members`` are named as our kernels' parameters are."""

    source: str
    fields: str
    members: tuple[str | int, ...]
    grid: Callable[[Case], Grid]
    block: int
    shared_bytes: int = 0
    takes_row_map: bool = False
    title: str = "CUDA C++"
    compare: Compare | None = None


@dataclass(frozen=True)
class TritonPeer:
    """A launch of ``benchmarks/peers/triton_launches.py``.

    ``scratch`` arrays of f32 are in the place of results that the function arranges in another way, and ``collect``
    makes these of them.
    """

    launch: Launch
    grid: Callable[[Case], Grid]
    scratch: Callable[[Case], dict[str, tuple[int, ...]]] = lambda case: {}
    collect: Callable[[Arrays], Arrays] = lambda results: results
    title: str = "Triton"
    compare: Compare | None = None


@dataclass(frozen=True)
class Work:
    """A work and its contenders.

    ``token_bytes`` are read of a token. ``grid`` is that of our kernel, whose parameters have names and whose block is
    known. ``is_copy`` says that little is computed, so that a copy of as many bytes is what to reach.
    """

    name: str
    token_bytes: int
    make: Callable[[str, Sizes, np.random.Generator], Case]
    reference: Callable[[Case], Arrays]
    compare: Compare
    grid: Callable[[Case, Grid], Grid]
    peers: tuple[CudaPeer, ...]
    triton: tuple[TritonPeer, ...] = ()
    is_copy: bool = False

    def make_case(self, kind: str, sizes: Sizes) -> Case:
        """Makes equal inputs in every call, and outputs that are not results."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name} {kind}".encode()))
        case = self.make(kind, sizes, rng)
        case.poison()
        return case


def _bytes_and_batch(block_bytes: int, token_bytes: int) -> Callable[[Case], Grid]:
    """A block for so many bytes of a sequence."""
    return lambda case: (_blocks(case.arrays["out"].shape[1] * token_bytes, block_bytes), case.sizes.batch, 1)


def _rows_and_batch(case: Case, block: Grid) -> Grid:
    """A block for as many tokens of a sequence as it has threads in its last dimension."""
    return _tokens_and_batch(block[2])(case)


def _tokens_and_batch(tokens_of_block: int) -> Callable[[Case], Grid]:
    """A block for so many tokens of a sequence."""
    return lambda case: (_blocks(case.arrays["out"].shape[1], tokens_of_block), case.sizes.batch, 1)


def _triton_gather(launch: Launch) -> TritonPeer:
    return TritonPeer(launch, _tokens_and_batch(launch.constants["BT"]))


_GATHER_MEMBERS = ("blocks", "lut", "lengths", "out", "lut.size1", "out.size1", "blocks.size2", "layer", 0)

_GATHER = Work(
    name="gather",
    token_bytes=HEADS * inputs.HEAD_SIZE * 2,
    make=inputs.gather,
    reference=references.gather,
    compare=references.compare_bits,
    grid=_rows_and_batch,
    peers=(CudaPeer("gather", "PPPPIIIII", _GATHER_MEMBERS, _bytes_and_batch(256 * 64, 2048), 256),),
    triton=(_triton_gather(LAUNCHES["gather"]),),
    is_copy=True,
)

_GATHER_DYNAMIC = Work(
    name="gather_dynamic",
    token_bytes=_GATHER.token_bytes,
    make=inputs.gather,
    reference=references.gather,
    compare=references.compare_bits,
    grid=_rows_and_batch,
    peers=(
        CudaPeer(
            "gather_dynamic",
            "PPPPIIIIIII",
            (*_GATHER_MEMBERS, "blocks.size3", HEADS * inputs.HEAD_SIZE // 8),
            _GATHER.peers[0].grid,
            256,
        ),
    ),
    is_copy=True,
)

_GATHER_FP8 = Work(
    name="gather_fp8",
    token_bytes=HEADS * (inputs.HEAD_SIZE + 4 * inputs.HEAD_SIZE // inputs.GROUP),
    make=inputs.gather_fp8,
    reference=references.gather_fp8,
    compare=references.compare_bits,
    grid=_rows_and_batch,
    peers=(
        CudaPeer(
            "gather_fp8",
            "PPPPPIIIII",
            ("blocks", "scales", *_GATHER_MEMBERS[1:]),
            _bytes_and_batch(256 * 32, 1024),
            256,
        ),
    ),
    triton=(_triton_gather(LAUNCHES["gather_fp8"]),),
    is_copy=True,
)


def _new_tokens(case: Case) -> int:
    return case.arrays["new"].shape[1]


_APPEND_FP8 = Work(
    name="append_fp8",
    token_bytes=2 * HEADS * inputs.HEAD_SIZE * 2,
    make=inputs.append_fp8,
    reference=references.append_fp8,
    compare=references.compare_bits,
    grid=lambda case, block: (_new_tokens(case), 2, 1),
    peers=(
        CudaPeer(
            "append_fp8",
            "PPPPPPIIII",
            ("new", "token_sequences", "token_positions", "lut", "blocks", "scales", "new.size1", "lut.size1",
             "blocks.size2", "layer"),
            lambda case: (_blocks(_new_tokens(case) * HEADS * 16, 256), 2, 1),
            256,
            compare=references.compare_reciprocal,
        ),
    ),
    triton=(
        TritonPeer(
            LAUNCHES["append_fp8"],
            lambda case: (_blocks(_new_tokens(case), LAUNCHES["append_fp8"].constants["BT"]), 2, 1),
            compare=references.compare_reciprocal,
        ),
    ),
    is_copy=True,
)


def _splits(case: Case) -> Grid:
    return case.sizes.batch, HEADS, case.arrays["part_o"].shape[2]


def _triton_decode(launch: Launch, title: str) -> TritonPeer:
    return TritonPeer(
        launch,
        _splits,
        scratch=lambda case: dict.fromkeys(("part_m", "part_l"), case.arrays["part_ml"].shape[:-1]),
        collect=lambda results: {
            "part_o": results["part_o"], "part_ml": np.stack([results["part_m"], results["part_l"]], -1)
        },
        title=title,
    )


_DECODE = Work(
    name="decode",
    token_bytes=2 * HEADS * inputs.HEAD_SIZE * 2,
    make=inputs.decode,
    reference=references.decode,
    compare=references.compare_attention,
    grid=lambda case, block: _splits(case),
    peers=(
        CudaPeer(
            "decode",
            "PPPPPPIIIIIf",
            ("q", "blocks", "lut", "lengths", "part_o", "part_ml", "lut.size1", "blocks.size2", "layer",
             "part_o.size2", "chunk", "scale_log2"),
            _splits,
            128,
        ),
    ),
    triton=(_triton_decode(LAUNCHES["decode"], "Triton"), _triton_decode(LAUNCHES["decode_dot"], "Triton, tl.dot")),
)


def _queries(case: Case) -> Grid:
    return case.sizes.batch, 1, 1


_TWO_TILES = 2 * inputs.TILE_ROWS * LATENT_SIZE * 2

_SPARSE_ROWS = Work(
    name="sparse_rows",
    token_bytes=LATENT_SIZE * 2,
    make=inputs.sparse_rows,
    reference=references.sparse_rows,
    compare=references.compare_bits,
    grid=lambda case, block: _queries(case),
    peers=(
        CudaPeer(
            "sparse_rows", "PPPII", ("blocks", "ids", "out", "ids.size1", LATENT_SIZE * 2), _queries, 128, _TWO_TILES
        ),
        CudaPeer(
            "sparse_rows_gather4", "PPI", ("ids", "out", "ids.size1"), _queries, 128, _TWO_TILES, takes_row_map=True,
            title="CUDA C++, gather4",
        ),
    ),
    triton=(
        TritonPeer(
            LAUNCHES["sparse_rows"],
            _queries,
            scratch=lambda case: {"columns": (case.sizes.batch, LATENT_SIZE)},
            collect=lambda results: {"out": results["columns"][:, 0::2] + results["columns"][:, 1::2]},
        ),
    ),
)

WORKS = {work.name: work for work in (_GATHER, _GATHER_DYNAMIC, _GATHER_FP8, _APPEND_FP8, _DECODE, _SPARSE_ROWS)}
