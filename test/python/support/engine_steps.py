"""Steps of an attention layer of vLLM without a model: ours beside the reference's."""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace

PAGES, PADDING, LAYERS = 24, 3, 2
SCALES = {"_k_scale_float": 0.5, "_v_scale_float": 0.25}
GARBAGE = 1 << 30
"""A page of the table after a sequence's end."""


@dataclass(frozen=True)
class Layer:
    """A layer and its cache.

    Attributes:
        order: The order of the dimensions in memory, by vLLM's letters.
        output_scale: The scale of outputs of fp8; None for outputs of ``dtype``.
        options: More arguments of the backend's class; ``sinks`` is a flag.
        kvcache: Options of the backend in ``additional_config``.
    """

    target: str = "cpu"
    dtype: str = "float32"
    cache_dtype: str = "auto"
    order: str = "LBNHC"
    tokens: int = 16
    heads: int = 4
    kv_heads: int = 2
    width: int = 32
    causal: bool = True
    output_scale: float | None = None
    options: dict = field(default_factory=dict)
    kvcache: dict = field(default_factory=dict)


class Steps:
    """The steps of a batch: (new tokens of each sequence) of each step."""

    def __init__(self, layer, counts=((5, 37, 1), (3, 1, 20), (1, 1, 1)), seed=0):
        import torch

        from kvcache.vllm.testing import operators  # noqa: F401

        torch.manual_seed(seed)
        self.layer, self.counts = layer, counts
        lengths = [sum(each) for each in zip(*counts)]
        columns = [-(-length // layer.tokens) for length in lengths]
        free = random.Random(seed).sample(range(1, PAGES), sum(columns))
        self.table = torch.full((len(lengths), max(columns) + 2), GARBAGE, dtype=torch.int32)
        for row, used in enumerate(columns):
            self.table[row, :used] = torch.tensor(free[:used])
            del free[:used]
        widths = layer.heads + 2 * layer.kv_heads
        dtype = getattr(torch, layer.dtype)
        # As a fused projection returns them.
        self.fused = [torch.randn(sum(n) + PADDING, widths * layer.width).to(dtype) for n in counts]

    def metadata(self, number):
        """vLLM's metadata of a step, and the slots of its rows."""
        import torch
        from vllm.v1.attention.backend import CommonAttentionMetadata

        counts = self.counts[number]
        before = [sum(each) for each in zip(*self.counts[:number])] or [0] * len(counts)
        starts = torch.tensor([0, *counts]).cumsum(0).int()
        rows = len(self.fused[number])
        positions = torch.cat([torch.arange(b, b + n) for b, n in zip(before, counts)])
        positions = torch.nn.functional.pad(positions, (0, PADDING))
        slots = torch.full((rows,), -2, dtype=torch.int64)
        torch.ops._C.compute_slot_mapping_kernel_impl(
            starts, positions, self.table, slots, self.layer.tokens
        )
        seq_lens = torch.tensor([b + n for b, n in zip(before, counts)], dtype=torch.int32)
        return CommonAttentionMetadata(
            query_start_loc=starts,
            query_start_loc_cpu=starts,
            seq_lens=seq_lens,
            num_reqs=len(counts),
            num_actual_tokens=sum(counts),
            max_query_len=max(counts),
            max_seq_len=int(seq_lens.max()) + 7,
            block_table_tensor=self.table,
            slot_mapping=slots,
            causal=self.layer.causal,
        )


def make_cache(layer, roles=2):
    """vLLM's tensor of one of two layers: [pages, heads, tokens, content]."""
    import torch
    from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE

    name = layer.dtype if layer.cache_dtype == "auto" else layer.cache_dtype
    dtype = getattr(torch, name, None) or STR_DTYPE_TO_TORCH_DTYPE[name]
    content = 656 if name == "fp8_ds_mla" else roles * (layer.width + (4 if name.endswith("per_token_head") else 0))
    sizes = {"L": LAYERS, "B": PAGES, "H": layer.kv_heads, "N": layer.tokens, "C": content}
    memory = torch.zeros([sizes[letter] for letter in layer.order], dtype=dtype)
    return memory, memory.permute([layer.order.index(letter) for letter in "LBHNC"])[1]


def make_config(layer):
    from vllm.config import CacheConfig, VllmConfig

    config = VllmConfig(
        cache_config=CacheConfig(block_size=layer.tokens),
        additional_config={"kvcache": {"target": layer.target, **layer.kvcache}},
    )
    config.model_config = SimpleNamespace(max_model_len=4096)
    return config


def run_layer(layer, steps, backend):
    """Runs the steps; returns the outputs of each, and the memory of the cache."""
    import torch
    from vllm.config import set_current_vllm_config

    torch.manual_seed(1)
    torch.set_default_dtype(getattr(torch, layer.dtype))
    memory, cache = make_cache(layer)
    config = make_config(layer)
    options = dict(layer.options)
    if options.pop("sinks", False):
        options["sinks"] = torch.randn(layer.heads, dtype=torch.bfloat16)
    with set_current_vllm_config(config):
        attention = backend.get_impl_cls()(
            layer.heads, layer.width, layer.width**-0.5, layer.kv_heads,
            kv_cache_dtype=layer.cache_dtype, **options,
        )  # fmt: skip
        builder = backend.get_builder_cls()(None, ["layer"], config, torch.device("cpu"))
    attention.process_weights_after_loading(getattr(torch, layer.dtype))
    owner = SimpleNamespace(impl=attention, kv_cache=cache, **SCALES)
    if hasattr(attention, "prepare"):
        attention.prepare(owner, builder.workspaces)
    outputs = []
    for number, fused in enumerate(steps.fused):
        common = steps.metadata(number)
        parts = fused.unflatten(-1, (-1, layer.width)).split([layer.heads, *[layer.kv_heads] * 2], 1)
        attention.do_kv_cache_update(owner, *parts[1:], cache, common.slot_mapping)
        given = layer.output_scale
        scale = None if given is None else torch.tensor([given], dtype=torch.float32)
        kind = parts[0].dtype if scale is None else torch.float8_e4m3fn
        out = torch.full(parts[0].shape, 7.0).to(kind)
        attention.forward(owner, *parts, cache, builder.build(0, common), output=out, output_scale=scale)
        outputs.append(out)
    return outputs, memory


def run_latent(layer, steps, backend):
    """As ``run_layer``, for latent rows whose first ``value_dim`` elements are values."""
    import torch
    from vllm.config import set_current_vllm_config

    torch.set_default_dtype(getattr(torch, layer.dtype))
    memory, cache = make_cache(layer, roles=1)
    cache = cache.squeeze(1)
    rank, config = layer.options["value_dim"], make_config(layer)
    with set_current_vllm_config(config):
        attention = backend.get_impl_cls()(
            layer.heads, layer.width, layer.width**-0.5, 1, None, None, layer.cache_dtype, None, "decoder", None,
            q_lora_rank=None, kv_lora_rank=rank, qk_nope_head_dim=16, qk_rope_head_dim=layer.width - rank,
            qk_head_dim=16 + layer.width - rank, v_head_dim=16, kv_b_proj=None,
        )  # fmt: skip
    from kvcache.vllm.latent import LatentDecode
    from kvcache.torch.workspaces import Workspaces
    from kvcache.vllm.steps import StepMetadata

    workspaces = Workspaces(len(steps.counts[0]), torch.device("cpu"))
    owner = SimpleNamespace(kv_cache=cache, **SCALES)
    scale = torch.tensor(SCALES["_k_scale_float"], dtype=torch.float32)
    if hasattr(attention, "prepare"):
        attention.prepare(owner, workspaces)
    outputs = []
    for number, fused in enumerate(steps.fused):
        common = steps.metadata(number)
        q, rows, _ = fused.unflatten(-1, (-1, layer.width)).split([layer.heads, 1, 1], 1)
        latent, rope = rows.squeeze(1).split([rank, layer.width - rank], -1)
        attention.do_kv_cache_update(
            latent, rope.unsqueeze(1), cache, common.slot_mapping, layer.cache_dtype, scale
        )
        step = StepMetadata.of(common, workspaces)
        decode = LatentDecode(common.block_table_tensor, common.seq_lens, None, step)
        q = q[: step.num_tokens]
        pair = q[..., :rank].contiguous(), q[..., rank:]
        out, _ = attention.forward_mqa(pair, cache, SimpleNamespace(decode=decode), owner)
        outputs.append(torch.nn.functional.pad(out, (0, 0, 0, 0, 0, PADDING), value=7))
    return outputs, memory


def compare(layer, **counts):
    """Compares outputs and caches of both backends; returns the largest differences."""
    import torch

    from kvcache.vllm import backend, latent
    from kvcache.vllm.testing import reference

    steps = Steps(layer, **counts)
    run, names = run_layer, (backend.Backend, reference.Backend)
    if "value_dim" in layer.options:
        run, names = run_latent, (latent.LatentBackend, reference.LatentBackend)
    (ours, our_memory), (theirs, their_memory) = (run(layer, steps, each) for each in names)
    for out, expected in zip(ours, theirs, strict=True):
        assert (out[-PADDING:].float() == 7).all()  # rows of padding stay
        assert expected[:-PADDING].float().isfinite().all()
    outputs = max((out.float() - expected.float()).abs().max().item() for out, expected in zip(ours, theirs))
    same = (our_memory.view(torch.uint8) == their_memory.view(torch.uint8)).float().mean().item()
    return outputs, same
