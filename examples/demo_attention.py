"""The part of the demo with ``kvcache.ops.attention``.

It runs decode, a prompt, the latent cache of MLA and sparse rows, on the CPU and on the
emulator of each chip. Every result is compared with float64.
"""

import time
from dataclasses import dataclass, field

import kvcache
import ml_dtypes
import numpy as np
from console import progress

PAGE_SIZE = 64
LAYERS, LAYER = 2, 1


@dataclass(frozen=True)
class Case:
    """A step of a batch: tokens in the cache, and new tokens, of each sequence."""

    name: str
    lengths: tuple[int, ...]
    new: tuple[int, ...]
    heads: int = 8
    query_heads: int = 32
    head_size: int = 128
    is_mla: bool = False
    options: dict[str, int | bool] = field(default_factory=dict)

    @property
    def params(self):
        return kvcache.KVCacheParams(
            "bf16",
            self.heads,
            self.head_size,
            page_size=PAGE_SIZE,
            total_num_layers=LAYERS,
            is_mla=self.is_mla,
        )

    @property
    def value_dim(self):
        return self.options.get("value_dim", self.head_size)


DEEPSEEK = {"heads": 1, "query_heads": 16, "head_size": 576, "is_mla": True}
CASES = [
    Case("decode", (513, 65, 0, 190), (1, 1, 1, 1), options={"split_tokens": 128}),
    Case("prompt", (64, 0), (17, 33)),
    Case("MLA", (130, 65), (1, 2), **DEEPSEEK, options={"value_dim": 512}),
    Case(
        "sparse MLA",
        (300, 70),
        (1, 1),
        **DEEPSEEK,
        options={"value_dim": 512, "rows": True},
    ),
]
SPARSE_ROWS = 64


class Step:
    """A cache of random numbers, queries, and the other arguments of a step."""

    def __init__(self, case, rng):
        self.case = case
        counts = [-(-(a + b) // PAGE_SIZE) for a, b in zip(case.lengths, case.new)]
        pages = sum(counts)
        shuffled = iter(rng.permutation(pages))
        self.lut = np.full((len(counts), -(-max(counts) // 8) * 8 + 16), pages, np.uint32)
        for row, count in zip(self.lut, counts):
            row[:count] = [next(shuffled) for _ in range(count)]

        def numbers(*shape):
            return rng.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)

        roles = 1 if case.is_mla else 2
        shape = roles, LAYERS, PAGE_SIZE, case.heads, case.head_size
        self.blocks = numbers(pages + 1, *shape)
        total = sum(case.new)
        self.q = numbers(total, case.query_heads, case.head_size)
        self.inputs = kvcache.StepInputs.of(
            blocks=self.blocks,
            lengths=np.array(case.lengths, np.uint32),
            lut=self.lut,
            row_offsets=np.cumsum([0, *case.new]).astype(np.uint32),
        )
        # The tokens that each query sees.
        self.seen = [
            (b, np.arange(length + i + 1))
            for b, (length, new) in enumerate(zip(case.lengths, case.new))
            for i in range(new)
        ]
        self.rows = None
        if case.options.get("rows"):
            self.seen = [
                (b, rng.permutation(tokens)[: SPARSE_ROWS - 3]) for b, tokens in self.seen
            ]
            self.rows = np.full((total, SPARSE_ROWS), -1, np.int32)
            for row, (b, tokens) in zip(self.rows, self.seen):
                row[: len(tokens)] = (
                    self.lut[b, tokens // PAGE_SIZE] * PAGE_SIZE + tokens % PAGE_SIZE
                )

    @property
    def scale(self):
        return self.case.head_size**-0.5

    def run(self, target):
        """Runs the operation; returns its output and its seconds."""
        case = self.case
        attend = kvcache.ops.attention(
            case.params, case.query_heads, target=target, **case.options
        )
        out = np.full((*self.q.shape[:2], case.value_dim), np.nan, ml_dtypes.bfloat16)
        rows = {} if self.rows is None else {"rows": self.rows}
        start = time.perf_counter()
        attend(self.inputs, LAYER, self.q, out=out, scale=self.scale, **rows)
        return out, time.perf_counter() - start

    def expect(self):
        """Computes the expected output in float64, query by query."""
        group = self.case.query_heads // self.case.heads
        out = np.empty((*self.q.shape[:2], self.case.value_dim))
        for i, (b, tokens) in enumerate(self.seen):
            pages = self.lut[b, tokens // PAGE_SIZE]
            read = self.blocks[pages, :, LAYER, tokens % PAGE_SIZE].astype(np.float64)
            keys = read[:, 0].repeat(group, axis=1)
            values = read[:, -1, :, : self.case.value_dim].repeat(group, axis=1)
            scores = (
                np.einsum("he,the->ht", self.q[i].astype(np.float64), keys) * self.scale
            )
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            out[i] = np.einsum("ht,the->he", weights, values)
        return out


def run(rng, chips, results):
    """Adds a line for each case and target."""
    targets = ["cpu", *(f"emulator:{chip}" for chip in chips)]
    for case in CASES:
        step = Step(case, rng)
        expected = step.expect()
        largest = np.abs(step.blocks[:, -1].astype(np.float32)).max()
        for target in progress(case.name, targets):
            out, seconds = step.run(target)
            error = np.abs(out.astype(np.float64) - expected)
            # Tensor cores, and dot products of a CPU, round probabilities to bf16.
            rounding = 2.0**-9 * largest
            agrees = (error <= 2.0**-8 * np.abs(expected) + rounding + 1e-5).all()
            place = target.replace("emulator:", "emulated ")
            detail = f"largest error {error.max():.1e}, values up to {np.abs(expected).max():.2f}"
            results.add(f"{case.name}, {place}", agrees, detail, seconds)
