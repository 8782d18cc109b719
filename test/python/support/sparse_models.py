"""Models of sparse attention with random weights, whose attention layers run on paged caches.

Layers are an object with the methods ``begin`` and ``end`` of a step, and ``attend``, which replaces the ``forward`` of
the attention of each layer.
"""

import functools

import numpy as np
import torch

import kvcache

MOST_TOKENS = 128
STEPS = [("cpu", 32), *((f"emulator:{chip}", 6) for chip in ("sm_80", "sm_90a", "sm_100a"))]
"""Targets with the number of tokens that tests generate there."""


def make_manager(*groups, page_size=16):
    """A manager of caches with rows of different sizes, whose pages are in one pool.

    Each group has the number of layers, the size of a row, and further parameters.
    """
    params, first = [], 0
    for layers, size, more in groups:
        options = {"n_kv_heads": 1, "is_mla": True} | more
        ids = range(first, first + layers)
        params.append(kvcache.KVCacheParams("f32", head_dim=size, page_size=page_size, layer_ids=ids, **options))
        first += layers
    return kvcache.PagedKVCacheManager(
        kvcache.MultiKVCacheParams(params) if len(params) > 1 else params[0],
        max_batch_size=1, max_seq_len=MOST_TOKENS, num_pages=1 + len(params) * MOST_TOKENS // page_size,
    )  # fmt: skip


def begin_step(manager, tokens, position):
    """Begins a step of the sequence, and returns the inputs of each group."""
    if position:
        manager.grow("a", tokens)
    else:
        manager.claim("a", tokens)
    return manager.inputs(["a"]).groups


class EntryCache:
    """A cache of entries that stand for several tokens each, of one sequence.

    All of its pages are there from the start. A step has a row for each new token, and the slot of the entry that the
    token closes.
    """

    def __init__(self, layers, size, width, target):
        params = kvcache.KVCacheParams("f32", 1, size, page_size=4, total_num_layers=layers, is_mla=True)
        entries = MOST_TOKENS // width
        self.params, self.width = params, width
        self.manager = kvcache.PagedKVCacheManager(
            params, max_batch_size=1, max_seq_len=entries, num_pages=entries // 4
        )
        self.manager.claim("a", np.arange(entries))
        self.lut = np.asarray(self.manager.inputs(["a"]).lut).astype(np.int32)
        self.store = kvcache.ops.append(params, slots="i32", target=target)

    def begin(self, position, count):
        """Begins a step with new tokens from a position on."""
        self.inputs = kvcache.StepInputs.of(
            blocks=self.manager.blocks, lengths=np.zeros(1, np.int32), lut=self.lut,
            row_offsets=np.array([0, count], np.int32),
        )  # fmt: skip
        self.lengths = np.array([position], np.int32)
        self.columns = max((position + count) // self.width, 1)
        positions = np.arange(position, position + count)
        entries, page_size = positions // self.width, self.params.page_size
        slots = self.lut[0, entries // page_size] * page_size + entries % page_size
        self.slots = np.where((positions + 1) % self.width == 0, slots, -1).astype(np.int32)

    def append(self, layer, rows):
        self.store(self.inputs, layer, rows, slots=self.slots)


def generate_tokens(model, layers, prompt, steps):
    """The most likely tokens after a prompt, from attention on paged caches."""
    for layer in model.model.layers:
        layer.self_attn.forward = functools.partial(layers.attend, layer.self_attn)
    tokens, position, found = prompt, 0, []
    for _ in range(steps):
        count = tokens.shape[1]
        layers.begin(tokens[0].numpy(), position)
        positions = torch.arange(position, position + count)[None]
        logits = model(tokens, position_ids=positions, use_cache=False).logits
        layers.end()
        position += count
        tokens = logits[:, -1:].argmax(-1)
        found.append(int(tokens))
    return found


def check_tokens(model, layers, steps, prompt_tokens=40):
    """Checks that a model generates the tokens of its own attention, which is plain PyTorch."""
    prompt = torch.randint(0, model.config.vocab_size, (1, prompt_tokens))
    expected = model.generate(prompt, max_new_tokens=steps, do_sample=False)[0, prompt_tokens:].tolist()
    assert generate_tokens(model, layers, prompt, steps) == expected
    assert len(set(expected)) > min(4, steps // 2)  # A model that repeats itself would agree by chance.
