"""The works of gpu_ops.py: operations of kvcache.ops, their shapes, and the expectations of the documentation.

Works are in the order of their importance, as the time on a GPU may end before them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from operations import Cache, Operation


@dataclass(frozen=True)
class Variant:
    """Options of the operation."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """Variants of an operation on the same arrays.

    Attributes:
        kind: The operation; ``fused`` is append with norms and rope.
        contexts: Tokens of each sequence, the new ones included.
        new: New tokens of each sequence.
        options: The options of attention, for all variants.
        chosen: Rows that a token sees, with the option ``rows``.
        peers: Other contenders: ``flash``, ``cudnn``, ``triton``, ``flashinfer``, ``flashinfer mla``, ``torch``.
        is_plain: Whether attention gets neither a workspace nor logarithms to write.
    """

    name: str
    kind: str
    cache: Cache
    contexts: tuple[int, ...]
    new: tuple[int, ...]
    variants: tuple[Variant, ...] = (Variant("ours"),)
    query_heads: int = 32
    options: dict[str, Any] = field(default_factory=dict)
    chosen: int = 0
    peers: tuple[str, ...] = ()
    is_plain: bool = False

    def make(self, variant: Variant, target: str) -> Any:
        """The operation."""
        own = self.options if self.kind == "attention" else {}
        return Operation(self.kind, self.cache, self.query_heads, {**own, **variant.options}).make(target)

    def shrink(self) -> Work:
        """Returns the work with a few sequences of a few tokens, for machines without a GPU."""
        batch = min(len(self.contexts), 3)
        step = 7 if len(set(self.contexts)) > 1 else 0
        contexts = tuple(min(context, 40 - step * i) for i, context in enumerate(self.contexts[:batch]))
        new = tuple(min(new, context) for new, context in zip(self.new, contexts))
        options = {**self.options, "window": 16} if "window" in self.options else self.options
        return dataclasses.replace(self, contexts=contexts, new=new, chosen=min(self.chosen, 24), options=options)


def decode(name: str, cache: Cache, batch: int, context: int, *variants: Variant, **more: Any) -> Work:
    return Work(name, "attention", cache, (context,) * batch, (1,) * batch, variants, **more)


def prompt(name: str, cache: Cache, batch: int, tokens: int, *variants: Variant, **more: Any) -> Work:
    more.setdefault("peers", ("flash", "cudnn"))
    return Work(name, "attention", cache, (tokens,) * batch, (tokens,) * batch, variants, **more)


def split(name: str, most: int = 32, tokens: int = 256, **options: Any) -> Variant:
    return Variant(name, {"split_tokens": tokens, "max_splits": most, **options})


K = 1024
GQA, GQA64 = Cache(), Cache(page=64)
FP8 = Cache("f8E4M3FN")
SCALED = Cache("f8E4M3FN", scale=("f32", 128))
LATENT = Cache(heads=1, size=576, page=64, is_latent=True)
LATENT_FP8 = dataclasses.replace(LATENT, dtype="f8E4M3FN")
MLA: dict[str, Any] = {"query_heads": 128, "options": {"value_dim": 512}}
SPARSE: dict[str, Any] = {"query_heads": 128, "options": {"value_dim": 512, "rows": True}, "chosen": 2 * K}
OF_LATENT = ("torch", "flashinfer mla")
ALL = ("flash", "cudnn", "triton", "flashinfer")


def both(most: int = 32) -> tuple[Variant, Variant]:
    """Decode by warps, and on tensor cores."""
    return split("warps", most, tile_rows=0), split("16-row tiles", most, tile_rows=16)


PROMPT = (
    Variant("64-row tiles", {"tile_rows": 64}),
    Variant("128-row tiles", {"tile_rows": 128}),
)
SWAPPED = split("swapped"), split("mma.sync", swap_operands=False)
OF_512: dict[str, Any] = {"options": {"value_dim": 512}}
RAGGED = tuple(2**i for i in range(6, 14)) * 8
WINDOW = 4 * K
NEW = (1,) * 64

WORKS = [
    decode("decode 32/8, 64 x 8K", GQA, 64, 8 * K, *both(), peers=ALL),
    decode("decode 32/8, 64 x 8K, pages of 64", GQA64, 64, 8 * K, *both(), peers=("flashinfer",)),
    decode("decode MLA 128, 64 x 8K", LATENT, 64, 8 * K, split("split"),
           split("parts of 1K", tokens=K), Variant("whole rows"), **MLA, peers=OF_LATENT),
    prompt("prompt 32/8, 1 x 8K", GQA, 1, 8 * K, *PROMPT),
    Work("append, 256 tokens", "append", GQA, (2 * K,) * 256, (1,) * 256, peers=("torch",)),
    Work("append, 16K tokens", "append", GQA, (4 * K,) * 4, (4 * K,) * 4, peers=("torch",)),
    decode("decode 32/8, 1 x 128K", GQA, 1, 128 * K, *both(512), peers=ALL),
    decode("decode 32/8, 8 x 32K", GQA, 8, 32 * K, *both(128), peers=ALL),
    decode("decode 32/8, 256 x 1K", GQA, 256, K, *both(), peers=ALL),
    decode("decode 32/8, 1 x 1K", GQA, 1, K, *both(), peers=ALL),
    decode("decode 64/8, 64 x 8K", GQA, 64, 8 * K, *both(),
           split("16-row tiles, swapped", tile_rows=16, swap_operands=True), query_heads=64, peers=ALL),
    decode("decode fp8 32/8, 64 x 8K", FP8, 64, 8 * K, *both()),
    decode("decode fp8 / 128, 64 x 8K", SCALED, 64, 8 * K, *both(),
           split("64-row tiles", tile_rows=64)),
    decode("decode MLA 128, 1 x 128K", LATENT, 1, 128 * K, split("split", 512),
           split("parts of 2K", 64, 2 * K), **MLA, peers=OF_LATENT),
    decode("decode MLA 128, 256 x 2K", LATENT, 256, 2 * K, split("split"), Variant("whole rows"), **MLA,
           peers=("flashinfer mla",)),
    decode("decode MLA fp8, 64 x 8K", LATENT_FP8, 64, 8 * K, split("split"), **MLA),
    decode("decode MLA 32, 64 x 8K", LATENT, 64, 8 * K, *SWAPPED, query_heads=32, **OF_512, peers=("torch",)),
    decode("decode MLA 16, 64 x 8K", LATENT, 64, 8 * K, *SWAPPED, query_heads=16, **OF_512, peers=("torch",)),
    decode("sparse MLA 2K of 8K, 64", LATENT, 64, 8 * K, Variant("whole rows"),
           split("split"), **SPARSE),
    prompt("prompt 32/8, 4 x 4K", GQA, 4, 4 * K, *PROMPT),
    prompt("prompt 32/8, 1 x 16K, pages of 64", GQA64, 1, 16 * K, *PROMPT),
    prompt("prompt 16/8 of 256, 1 x 8K", Cache(size=256), 1, 8 * K, Variant("64-row tiles"),
           Variant("128-row tiles", {"tile_rows": 128}), query_heads=16),
    prompt("prompt 32/8 of 64, 1 x 8K", Cache(size=64), 1, 8 * K, Variant("64-row tiles"),
           Variant("128-row tiles", {"tile_rows": 128})),
    prompt("prompt fp8 / 128, 1 x 8K", SCALED, 1, 8 * K, Variant("64-row tiles"),
           Variant("128-row tiles", {"tile_rows": 128}), peers=()),
    prompt("prompt 32/8, window 4K, 1 x 16K", GQA, 1, 16 * K, *PROMPT, options={"window": WINDOW}, peers=()),
    prompt("prompt MLA 128, 1 x 2K", LATENT, 1, 2 * K, Variant("ours"), **MLA, peers=()),
    Work("append fp8 / 128, 256 tokens", "append", SCALED, (2 * K,) * 256, (1,) * 256),
    Work("append fp8 / 128, 16K tokens", "append", SCALED, (4 * K,) * 4, (4 * K,) * 4),
    Work("append, norm and rope, 16K tokens", "fused", GQA, (4 * K,) * 4, (4 * K,) * 4),
    Work("gather, 8 x 8K", "gather", GQA, (8 * K,) * 8, (1,) * 8, peers=("torch",)),
    Work("gather fp8 / 128, 8 x 8K", "gather", SCALED, (8 * K,) * 8, (1,) * 8),
    Work("copy_pages, 4,096 pages", "copy_pages", GQA, (8 * K,) * 16, (1,) * 16, peers=("torch",)),
    Work("merge_states, 8 parts of 2,048 rows", "merge_states", GQA, (8,), (2 * K,)),
    Work("decode 32/8, ragged 64 to 8K", "attention", GQA, RAGGED, NEW, both(), peers=("flashinfer",)),
    Work("prompts of 2K beside 60 decodes of 4K", "attention", GQA, (4 * K,) * 62, (2 * K, 2 * K) + (1,) * 60,
         (split("16-row tiles", tile_rows=16), split("64-row tiles", tile_rows=64))),
    Work("drafts of 4 tokens, 64 x 8K", "attention", GQA, (8 * K,) * 64, (4,) * 64,
         (split("16-row tiles", tile_rows=16, split_rows=4),)),
    decode("decode, window 4K of 32K, cap, sinks, 64", GQA, 64, 32 * K, *both(),
           options={"window": WINDOW, "soft_cap": 50.0, "sinks": True}),
    decode("decode int8 / 32, 64 x 8K", Cache("i8", scale=("f32", 32)), 64, 8 * K, *both()),
    decode("decode 8/8, 64 x 4K", GQA, 64, 4 * K, split("warps"), query_heads=8,
           peers=("flash", "cudnn", "flashinfer")),
    decode("decode 32/8 of 64, 64 x 8K", Cache(size=64), 64, 8 * K, *both(), peers=("flash",)),
    decode("decode 32/8, 8 x 8K, own workspace, no lse", GQA, 8, 8 * K, *both(64), is_plain=True),
]  # fmt: skip
