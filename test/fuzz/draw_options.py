"""Draws options of operations, and compiles each drawn operation to PTX for a chip.

Run as a program, it compiles operations from a seed on, and prints each seed before it
compiles: after a crash, the last one says what crashed.
"""

import dataclasses
import os
import random
import re
import signal
import sys

os.environ["KVCACHE_CACHE"] = "off"

import kvcache
import kvcache.ops
from kvcache.ops import index_scoring, pooling, selection

CHIPS = "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_120a"
# Elements, scales or none, and whether there are zero points.
FORMATS = [
    ("f32", None, False),
    ("bf16", None, False),
    ("f16", None, False),
    ("i8", None, False),
    ("f8E4M3FN", None, False),
    ("f8E5M2", None, False),
    *((element, scale, False) for element in ("i8", "f8E4M3FN") for scale in ("f32", "f16", "bf16", "f8E8M0FNU")),
    *(("f4E2M1FN", scale, False) for scale in ("f8E4M3FN", "f8E8M0FNU")),
    *(("i4", scale, True) for scale in ("f32", "f16", "bf16")),
]
# An error that drawn options may cause: a rule of a drawn op, or the limit of a chip. An error of
# another op is a finding, because the expansion of a drawn op built it.
RULE = re.compile(
    r"'kvcache\.(attention|append|gather|copy_pages|pool|index_scores|top_rows)' op (expects|requires|attribute)"
    r"|has \d+ bytes of shared memory"
)


def draw_size(draw):
    """Sizes of heads: most are small, and some are long or odd."""
    kind = draw.random()
    if kind < 0.5:
        return 16 * draw.randint(1, 8)
    if kind < 0.8:
        return 2 * draw.randint(1, 64)
    return draw.choice([1, 3, 7, 144, 176, 192, 208, 240, 256, 272, 288, 320, 512, 576])


def draw_cache(draw):
    element, scale, has_zero_points = draw.choice(FORMATS)
    size = draw_size(draw)
    granularity = draw.choice([1, 2, 3, 7, 8, 16, 32, 64, size]) if scale else None
    config = scale and kvcache.KVCacheQuantizationConfig(scale, granularity, scale if has_zero_points else None)
    is_latent = draw.random() < 0.25
    return kvcache.KVCacheParams(
        element, 1 if is_latent else draw.choice([1, 2, 3]), size, page_size=draw.choice([1, 3, 16, 48, 64]),
        total_num_layers=draw.choice([1, 2]), is_mla=is_latent, kvcache_quant_config=config,
    )


def maybe(draw, choices, share=0.3):
    return draw.choice(list(choices)) if draw.random() < share else None


def draw_attention(draw, params):
    narrow = params.dtype_shorthand not in ("f32", "bf16", "f16")
    is_split = draw.random() < 0.5
    size = params.head_dim
    value_dim = draw.choice([size, size, max(size // 2, 1), max(size - 16, 1), draw.randint(1, size)])
    more = {"split_tokens": draw.choice([1, 16, 48, 256]), "max_splits": draw.choice([1, 4, 32]),
            "split_rows": draw.choice([1, 2, 5])} if is_split else {}
    sparse = draw.choice([False] * 8 + [True, "heads"])
    if not sparse:
        more |= {"causal": draw.random() < 0.7, "window": maybe(draw, [1, 7, 100]), "chunk": maybe(draw, [1, 40, 64]),
                 "mask": draw.random() < 0.2, "kv_lengths": draw.random() < 0.1}
    return kvcache.ops.attention(
        params, params.n_kv_heads_per_device * draw.choice([1, 2, 3, 4, 7, 8, 16, 64]), rows=sparse,
        dtype=draw.choice(["f32", "bf16", "f16", "f8E4M3FN"]) if narrow else None, value_dim=value_dim,
        soft_cap=maybe(draw, [3.0]), sinks=draw.random() < 0.2, static_scales=draw.random() < 0.3,
        tile_rows=maybe(draw, [0, 16, 32, 64, 128], 0.6), swap_operands=maybe(draw, [True, False]),
        scheduled_blocks=maybe(draw, [0, 1, 77]) if is_split else None,
        l2_hint=maybe(draw, ["evict_first", "evict_normal", "evict_last"]),
        query_rope=maybe(draw, [*range(1, min(size, 100)), 64]) if params.is_mla else None, **more,
    )


def draw_append(draw, params):
    size, is_roped = params.head_dim, draw.random() < 0.5
    rope = 2 * draw.randint(1, max(size // 2, 1)) if is_roped else None
    slots = maybe(draw, ["i32", "i64"])
    return kvcache.ops.append(
        params, dtype=maybe(draw, ["f32", "bf16", "f16"]), power_of_two=draw.random() < 0.2,
        static_scales=draw.random() < 0.3, norm=maybe(draw, range(1, size + 1)), rope=rope,
        rope_begin=draw.randint(0, max(size - rope, 0)) if is_roped and draw.random() < 0.5 else 0,
        interleaved=is_roped and draw.random() < 0.5, query_heads=maybe(draw, [params.n_kv_heads_per_device * 2]),
        latent_rope=maybe(draw, range(1, size)) if params.is_mla and size > 1 else None,
        slots=slots, positions="i32" if slots and is_roped else maybe(draw, ["i32"]) if is_roped else None,
        block_threads=maybe(draw, [32, 64, 1024]), query_dtype=maybe(draw, ["f8E4M3FN"]),
    )


def draw_gather(draw, params):
    return kvcache.ops.gather(
        params, dtype=maybe(draw, ["f32", "bf16", "f16"]), ragged=draw.random() < 0.5,
        static_scales=draw.random() < 0.3, block_threads=maybe(draw, [32, 1024]),
        heads_per_thread=maybe(draw, [1, 3, 32]),
    )


def draw_copy(draw, params):
    return kvcache.ops.copy_pages(params, block_threads=maybe(draw, [32, 1024]))


def draw_scores(draw, params):
    if draw.random() < 0.8:
        params = dataclasses.replace(params, n_kv_heads=1, head_dim=32 * draw.randint(1, 9))
    return kvcache.ops.index_scores(
        params, draw.choice([1, 3, 12, 32, 64]), relu=draw.random() < 0.5, sum_heads=draw.random() < 0.5,
        width=maybe(draw, [2, 4]) or 1, block=maybe(draw, [1, 8, 128]), weights=draw.random() < 0.5,
        dtype=maybe(draw, ["f32", "bf16", "f16", "f8E4M3FN", "f8E5M2", "f4E2M1FN"]), block_threads=maybe(draw, [32, 1024]),
    )


def draw_pool(draw, params):
    kind = draw.choice(["mean", "min_max", "gated", "gated"])
    drawn = kvcache.ops.pool(
        params, draw.choice([1, 3, 4, 128]), kind=kind, overlap=kind == "gated" and draw.random() < 0.5,
        dtype=maybe(draw, ["f32", "bf16", "f16"]), block_threads=maybe(draw, [32, 1024]),
    )
    if draw.random() < 0.3:
        drawn.source = pooling.pool_source(dataclasses.replace(drawn.spec, has_new=True), pooling.Pool.mutates)
    return drawn


def draw_selection(draw, params):
    width, whole, expand = maybe(draw, [2, 3, 128]) or 1, draw.random() < 0.5, draw.random() < 0.5
    return kvcache.ops.top_rows(
        params, draw.choice([1, 16, 512, 2048, 4096]), width=width, whole=whole, expand=expand,
        tail=whole and expand and draw.random() < 0.5, first=maybe(draw, [1, 9]) or 0, last=maybe(draw, [1, 9]) or 0,
        block_threads=maybe(draw, [32, 96, 512]), splits=maybe(draw, [2, 7, 256]) or 1,
    )


KINDS = [draw_attention] * 5 + [draw_append] * 4 + [draw_gather, draw_copy, draw_pool, draw_scores, draw_selection]


def draw_program(seed):
    """The source and the chip of a seed, or None where options contradict each other."""
    draw = random.Random(seed)
    try:
        operation = draw.choice(KINDS)(draw, draw_cache(draw))
    except ValueError:
        return None
    return operation.source, draw.choice(CHIPS), draw.random() < 0.3


def compile_program(seed):
    """Whether a drawn program compiled, or the error that it may not have."""
    program = draw_program(seed)
    if program is None:
        return "refused"
    source, chip, checks = program
    try:
        kvcache.compile(source, chip, opt_level=0, bounds_checks=checks)
    except kvcache.CompileError as error:
        return "refused" if RULE.search(str(error)) else f"error {str(error).splitlines()[0][:300]}"
    return "compiled"


def only_sources():
    """Operations are not compiled for the CPU where they are made."""
    for module in (kvcache.ops, index_scoring, pooling, selection):
        module.make = lambda kind, spec, *_, **__: type(
            "Drawn", (), {"source": kind.write(spec, kind.mutates), "spec": spec}
        )


def main(first, count, seconds_each=60):
    only_sources()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends a compilation that takes too long
    for seed in range(first, first + count):
        print(seed, end=" ", flush=True)
        signal.setitimer(signal.ITIMER_PROF, seconds_each)
        print(compile_program(seed), flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
