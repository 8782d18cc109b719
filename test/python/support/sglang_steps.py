"""Steps of an attention layer of SGLang without a model: the backend beside PyTorch."""

import json
import os
import random
from dataclasses import dataclass, field
from types import SimpleNamespace

REQUESTS, TOKENS, PADDING = 7, 96, 3
SCALES = {"k_scale_float": 0.5, "v_scale_float": 0.25}
GARBAGE = 1 << 20
"""A slot of the table after a sequence's end."""


@dataclass(frozen=True)
class Layer:
    """A layer and its pool.

    Attributes:
        window: The most tokens that a token sees, including itself; None for all.
        hybrid: Whether layers with windows have a pool of their own.
        latent: Elements of a value of a latent row; None for keys and values.
        kvcache: Options of the backend.
    """

    target: str = "cpu"
    dtype: str = "float32"
    cache_dtype: str = ""
    page_size: int = 1
    heads: int = 4
    kv_heads: int = 2
    width: int = 32
    value_width: int = 32
    window: int | None = None
    soft_cap: float = 0.0
    sinks: str = ""
    hybrid: bool = False
    latent: int | None = None
    kvcache: dict = field(default_factory=dict)


class Slots:
    """The table of slots, of requests that take pages in a random order."""

    def __init__(self, layer, lengths, seed):
        import torch

        generator = random.Random(seed)
        size = layer.page_size
        self.pages = -(-sum(lengths) // size) + len(lengths)
        free = generator.sample(range(1, self.pages + 1), self.pages)
        self.rows = torch.tensor(generator.sample(range(REQUESTS), len(lengths)))
        self.table = torch.full((REQUESTS, TOKENS), GARBAGE, dtype=torch.int32)
        for row, length in zip(self.rows.tolist(), lengths):
            for first in range(0, length, size):
                page, count = free.pop(), min(size, length - first)
                self.table[row, first : first + count] = page * size + torch.arange(count)
        # Windows have pages of their own, in another order.
        order = [0, *generator.sample(range(1, self.pages + 1), self.pages)]
        pages = torch.tensor(order).repeat_interleave(size) * size
        self.mapping = pages + torch.arange(size).repeat(self.pages + 1)


def make_pool(layer, slots):
    """A pool with two layers, of which the tests use the second."""
    import torch
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, MLATokenToKVPool
    from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool

    common = {
        "size": slots.pages * layer.page_size,
        "page_size": layer.page_size,
        "dtype": getattr(torch, layer.cache_dtype or layer.dtype),
        "device": "cpu",
    }
    heads = {"head_num": layer.kv_heads, "head_dim": layer.width}
    if layer.latent:
        rope = layer.width - layer.latent
        return MLATokenToKVPool(
            **common, kv_lora_rank=layer.latent, qk_rope_head_dim=rope, layer_num=2, enable_memory_saver=False
        )
    if layer.hybrid:
        pool = SWAKVPool(
            **common, **heads, size_swa=common["size"], swa_attention_layer_ids=[1], full_attention_layer_ids=[0]
        )
        pool.register_mapping(slots.mapping)
        return pool
    return MHATokenToKVPool(
        **common, **heads, v_head_dim=layer.value_width, layer_num=2, enable_memory_saver=False
    )


def make_layer(layer):
    """SGLang's module of the layer."""
    from sglang.srt.layers.radix_attention import RadixAttention

    module = RadixAttention(
        layer.heads, layer.width, layer.width**-0.5, 1 if layer.latent else layer.kv_heads, 1,
        logit_cap=layer.soft_cap, v_head_dim=layer.latent or layer.value_width,
        sliding_window_size=layer.window - 1 if layer.window else -1,
    )  # fmt: skip
    if layer.cache_dtype and not layer.latent:
        vars(module).update(SCALES)
    return module


def publish_options(**spec):
    """Sets the options of SGLang's process that the backend reads."""
    from kvcache.sglang import backend, support

    speculation = SimpleNamespace(
        **{"speculative_algorithm": None, "speculative_num_draft_tokens": None, "speculative_eagle_topk": None} | spec
    )
    support.get_parallel = lambda: SimpleNamespace(attn_dcp_size=1)
    support.get_exec = lambda: SimpleNamespace(dllm=SimpleNamespace(dllm_algorithm=None))
    for module in (backend, support):
        module.get_spec = lambda: speculation


def make_runner(layer, module, pool, slots):
    """The parts of SGLang's model runner that the backend reads."""
    return SimpleNamespace(
        device="cpu",
        model=SimpleNamespace(named_modules=lambda: [("model.layers.1.attn", module)]),
        model_config=SimpleNamespace(is_encoder_decoder=False),
        is_draft_worker=False,
        kv_index_translator=SimpleNamespace(is_translating=False),
        token_to_kv_pool=pool,
        req_to_token_pool=SimpleNamespace(req_to_token=slots.table),
        page_size=layer.page_size,
        sliding_window_size=layer.window - 1 if layer.window else None,
    )


def make_batch(slots, before, counts, mode):
    """SGLang's ``ForwardBatch`` of a step."""
    import torch
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    ends = [b + n for b, n in zip(before, counts)]
    verifies = mode == "TARGET_VERIFY"
    places = [slots.table[row, b:e] for row, b, e in zip(slots.rows.tolist(), before, ends)]
    return SimpleNamespace(
        forward_mode=ForwardMode[mode],
        seq_lens=torch.tensor(before if verifies else ends),
        req_pool_indices=slots.rows,
        out_cache_loc=torch.cat(places).long(),
        extend_seq_lens=torch.tensor(counts, dtype=torch.int32),
        extend_seq_lens_cpu=list(counts),
        spec_info=SimpleNamespace(draft_token_num=counts[0], tree_topk=1) if verifies else None,
    )


# --- The model ---------------------------------------------------------------------------


def attend(layer, query, keys, values, sinks):
    """Attends with the last rows of a sequence, in f32: [rows, heads, elements]."""
    import torch

    group = layer.heads // keys.shape[1]
    keys, values = (each.repeat_interleave(group, 1) for each in (keys, values))
    scores = torch.einsum("qhd,khd->hqk", query.float(), keys) * layer.width**-0.5
    if layer.soft_cap:
        scores = layer.soft_cap * torch.tanh(scores / layer.soft_cap)
    at = torch.arange(len(keys))
    own = at[len(keys) - len(query) :, None]
    seen = (at <= own) & (at > own - (layer.window or len(keys)))
    scores = scores.masked_fill(~seen, -torch.inf)
    if sinks is not None:
        column = sinks.float()[:, None, None].expand(-1, len(query), 1)
        scores = torch.cat([scores, column], -1)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1)[..., : len(keys)], values)


def store(layer, rows, name):
    """New rows as the cache has them, in f32."""
    import torch

    if not layer.cache_dtype:
        return rows.float()
    scale = 1.0 if layer.latent else SCALES[name]
    return (rows.float() / scale).to(getattr(torch, layer.cache_dtype)).float() * scale


# --- Steps -------------------------------------------------------------------------------

STEPS = [("EXTEND", (5, 37, 1)), ("MIXED", (3, 1, 20)), ("DECODE", (1, 1, 1)), ("TARGET_VERIFY", (3, 3, 3))]


def run_steps(layer, steps=STEPS, seed=0):
    """Runs steps; returns the largest difference of outputs."""
    import torch

    from kvcache.sglang.backend import Backend

    os.environ["KVCACHE_SGLANG"] = json.dumps({"target": layer.target, **layer.kvcache})
    publish_options(speculative_num_draft_tokens=3)
    torch.manual_seed(seed)
    lengths = [sum(each) for each in zip(*(counts for _, counts in steps))]
    slots = Slots(layer, lengths, seed)
    pool, module = make_pool(layer, slots), make_layer(layer)
    fill_garbage(pool)
    backend = Backend(make_runner(layer, module, pool, slots))
    sinks = torch.randn(layer.heads, dtype=getattr(torch, layer.sinks)) if layer.sinks else None
    past = [([], []) for _ in lengths]
    worst = 0.0
    for number, (mode, counts) in enumerate(steps):
        before = [sum(each) for each in zip(*(counts for _, counts in steps[:number]))] or [0] * len(counts)
        if layer.hybrid:
            free_old_slots(layer, slots, before)
        batch = make_batch(slots, before, counts, mode)
        q, k, v = make_rows(layer, sum(counts), PADDING if mode in ("EXTEND", "MIXED") else 0)
        backend.init_forward_metadata(batch)
        out = backend.forward(q.flatten(1), k, v, module, batch, **({} if sinks is None else {"sinks": sinks}))
        out = out.view(len(q), layer.heads, -1)
        first = 0
        for (keys, values), count in zip(past, counts):
            rows = slice(first, first + count)
            first += count
            keys.append(store(layer, k[rows], "k_scale_float"))
            values.append(store(layer, v[rows], "v_scale_float"))
            expected = attend(layer, q[rows], torch.cat(keys), torch.cat(values), sinks)
            worst = max(worst, (out[rows].float() - expected).abs().max().item())
        assert (out[first:] == 0).all()
    return worst


def make_rows(layer, rows, padding):
    """Queries, keys and values as views of one projection."""
    import torch

    dtype = getattr(torch, layer.dtype)
    if layer.latent:
        q = torch.randn(rows + padding, layer.heads, layer.width).to(dtype)
        k = torch.randn(rows + padding, 1, layer.width).to(dtype)
        return q, k, k[..., : layer.latent]
    widths = [layer.heads * layer.width, layer.kv_heads * layer.width, layer.kv_heads * layer.value_width]
    parts = torch.randn(rows + padding, sum(widths)).to(dtype).split(widths, 1)
    heads = layer.heads, layer.kv_heads, layer.kv_heads
    return [part.unflatten(1, (count, -1)) for part, count in zip(parts, heads)]


def fill_garbage(pool):
    """Fills all slots, so that a slot that must not be read changes the outputs."""
    for each in (getattr(pool, "full_kv_pool", pool), getattr(pool, "swa_kv_pool", pool)):
        for layer in range(2 if each is pool else 1):
            for tensor in each.get_kv_buffer(layer):
                tensor.copy_(tensor.float().fill_(100.0).to(tensor.dtype))


def free_old_slots(layer, slots, lengths):
    """Frees the pages before windows: SGLang maps their slots to slot 0."""
    for row, length in zip(slots.rows.tolist(), lengths):
        old = max(0, length + 1 - layer.window) // layer.page_size * layer.page_size
        slots.mapping[slots.table[row, :old].long()] = 0
