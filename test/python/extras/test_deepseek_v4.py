"""DeepSeek V4 with random weights: the tokens of transformers' plain attention, on paged caches.

A layer attends to a window of latent rows with sinks, and to compressed entries without them. ``merge_states`` makes one
softmax of both. ``pool`` compresses: the states of closed groups are in a cache of a window, and new ones in an array.
Scores in f32 differ from those of the reference by rounding, so the tokens could differ where two scores at the
threshold are within the bound of their errors. With these weights none are.
"""

import pytest
import torch
from sparse_models import STEPS, EntryCache, begin_step, check_tokens, make_manager
from transformers import DeepseekV4Config, DeepseekV4ForCausalLM
from transformers.models.deepseek_v4.modeling_deepseek_v4 import apply_rotary_pos_emb

import kvcache

SPARSE, HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"
LAYERS = ["sliding_attention", SPARSE, HEAVY, SPARSE, HEAVY]
CHOSEN = 4


def make_model():
    torch.manual_seed(7)
    config = DeepseekV4Config(
        vocab_size=211, hidden_size=64, moe_intermediate_size=32, num_hidden_layers=len(LAYERS), layer_types=LAYERS,
        mlp_layer_types=["hash_moe", *["moe"] * (len(LAYERS) - 1)], num_attention_heads=4, head_dim=32, q_lora_rank=32,
        partial_rotary_factor=0.25, n_routed_experts=4, num_experts_per_tok=2, sliding_window=12, o_groups=2,
        o_lora_rank=16, compress_rates={SPARSE: 4, HEAVY: 8}, index_n_heads=8, index_head_dim=32, index_topk=CHOSEN,
        hc_mult=2, max_position_embeddings=256, initializer_range=0.3, bos_token_id=None, eos_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    model = DeepseekV4ForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        if name.endswith(("sinks", "position_bias")):
            torch.nn.init.normal_(parameter)
    return model


class Compressor:
    """Compresses states of tokens to entries.

    The states of the last two groups are in a group of the manager, ``states``. Those of a token are its values and its
    gates, which have a part for the next group and one for its own if groups overlap.
    """

    def __init__(self, states, layers, size, width, overlap, target):
        self.params, self.width = states, width
        self.entries = EntryCache(layers, size, width, target)
        self.store = kvcache.ops.append(states, target=target)
        self.pool = kvcache.ops.pool(states, width, kind="gated", overlap=overlap, target=target)

    def begin(self, inputs, position, count):
        self.inputs = inputs
        self.entries.begin(position, count)

    def compress(self, layer, module, hidden, positions):
        """Stores the entries of the groups that new tokens close."""
        gates = module.gate_proj(hidden)[0] + module.position_bias[positions % self.width]
        states = torch.cat([module.kv_proj(hidden)[0], gates], -1)[:, None].contiguous()
        pooled = torch.zeros(len(states), 1, self.entries.params.head_dim)
        self.pool(self.inputs, layer, out=pooled, new=states)
        self.store(self.inputs, layer, states)
        first = positions // self.width * self.width
        cos, sin = module.rotary_emb(hidden, position_ids=first[None], layer_type="compress")
        entries = apply_rotary_pos_emb(module.kv_norm(pooled)[:, 0][None, None], cos, sin)
        self.entries.append(layer, entries[0, 0, :, None].contiguous())


class CompressedLayers:
    """The attention of all layers. A layer has the number ``numbers[i]`` among those of its kind."""

    def __init__(self, config, target):
        self.config = config
        size, index_size, rates = config.head_dim, config.index_head_dim, config.compress_rates
        sparse, heavy = LAYERS.count(SPARSE), LAYERS.count(HEAVY)
        self.numbers = [LAYERS[:i].count(kind) for i, kind in enumerate(LAYERS)]
        overlapped = {"reach": kvcache.reach.window(2 * rates[SPARSE])}
        self.manager = make_manager(
            (len(LAYERS), size, {"reach": kvcache.reach.window(config.sliding_window)}),
            (sparse, 4 * size, overlapped),
            (sparse, 4 * index_size, overlapped),
            (heavy, 2 * size, {"reach": kvcache.reach.window(rates[HEAVY])}),
            page_size=4,
        )
        window, *states = (group.params for group in self.manager.params.groups)
        self.sparse = Compressor(states[0], sparse, size, rates[SPARSE], overlap=True, target=target)
        self.index = Compressor(states[1], sparse, index_size, rates[SPARSE], overlap=True, target=target)
        self.heavy = Compressor(states[2], heavy, size, rates[HEAVY], overlap=False, target=target)
        ops, heads, where = kvcache.ops, config.num_attention_heads, {"target": target}
        self.append = ops.append(window, **where)
        latent = {"value_dim": size, **where}
        self.attend_window = ops.attention(window, heads, window=config.sliding_window, sinks=True, **latent)
        self.attend_entries = ops.attention(self.sparse.entries.params, heads, rows=True, **latent)
        self.score = ops.index_scores(
            self.index.entries.params, config.index_n_heads, relu=True, sum_heads=True, weights=True,
            width=rates[SPARSE], **where,
        )  # fmt: skip
        self.choose = {
            compressor: ops.top_rows(compressor.entries.params, k, width=compressor.width, whole=True, **where)
            for compressor, k in ((self.sparse, CHOSEN), (self.heavy, 16))
        }
        self.merge = ops.merge_states(heads, size, dtype="f32", **where)

    def begin(self, tokens, position):
        self.inputs, *states = begin_step(self.manager, tokens, position)
        for compressor, inputs in zip((self.sparse, self.index, self.heavy), states):
            compressor.begin(inputs, position, len(tokens))

    def end(self):
        self.manager.step(["a"])

    def score_entries(self, layer, module, hidden, q_residual, positions):
        """The scores of the entries that each new token sees, by the indexer."""
        self.index.compress(layer, module, hidden, positions)
        cos, sin = module.rotary_emb(hidden, position_ids=positions[None], layer_type="compress")
        q = module.q_b_proj(q_residual).view(1, len(positions), -1, module.head_dim).transpose(1, 2)
        q = apply_rotary_pos_emb(q, cos, sin)[0].transpose(0, 1).contiguous()
        scorer, entries = module.scorer, self.index.entries
        weights = scorer.weights_proj(hidden)[0] * (scorer.weights_scaling * scorer.softmax_scale)
        scores = torch.empty(len(q), entries.columns)
        self.score(entries.inputs, layer, q, weights=weights.contiguous(), out=scores, lengths=entries.lengths)
        return scores

    def attend_compressed(self, module, hidden, q, q_residual, positions, out, lse):
        """Attends to the entries that are chosen, or to all closed ones."""
        layer, compressor = self.numbers[module.layer_idx], self.sparse
        if module.layer_type == HEAVY:
            compressor = self.heavy
            scores = torch.zeros(len(q), compressor.entries.columns)
        else:
            scores = self.score_entries(layer, module.compressor.indexer, hidden, q_residual, positions)
        compressor.compress(layer, module.compressor, hidden, positions)
        entries, choose = compressor.entries, self.choose[compressor]
        rows = torch.empty(len(q), CHOSEN if compressor is self.sparse else 16, dtype=torch.int32)
        choose(entries.inputs, scores, out=rows, lengths=entries.lengths)
        self.attend_entries(entries.inputs, layer, q, out=out, lse=lse, scale=module.scaling, rows=rows)

    def attend(self, module, hidden_states, position_embeddings, position_ids, **_):
        shape = (*hidden_states.shape[:2], -1, module.head_dim)
        cos, sin = position_embeddings[module.rope_layer_type]
        q_residual = module.q_a_norm(module.q_a_proj(hidden_states))
        q = module.q_b_norm(module.q_b_proj(q_residual).view(shape).transpose(1, 2))
        q = apply_rotary_pos_emb(q, cos, sin)[0].transpose(0, 1).contiguous()
        latent = module.kv_norm(module.kv_proj(hidden_states)).view(shape).transpose(1, 2)
        latent = apply_rotary_pos_emb(latent, cos, sin)[0].transpose(0, 1).contiguous()
        self.append(self.inputs, module.layer_idx, latent)
        outs, lses = torch.empty(2, *q.shape), torch.empty(2, *q.shape[:2])
        window = {"out": outs[0], "lse": lses[0], "sinks": module.sinks.detach()}
        self.attend_window(self.inputs, module.layer_idx, q, scale=module.scaling, **window)
        out = outs[0]
        if module.compressor is not None:
            positions = position_ids[0]
            self.attend_compressed(module, hidden_states, q, q_residual, positions, outs[1], lses[1])
            out = torch.empty_like(q)
            self.merge(outs, lses, out, torch.empty_like(lses[0]))
        # Values have the rope of their keys, which is undone.
        out = apply_rotary_pos_emb(out.transpose(0, 1)[None], cos, -sin).transpose(1, 2)
        grouped = module.o_a_proj(out.reshape(*shape[:2], self.config.o_groups, -1)).flatten(2)
        return module.o_b_proj(grouped), None


@pytest.mark.slow
@pytest.mark.parametrize(("target", "steps"), STEPS)
@torch.no_grad()
def test_deepseek_v4_generates_the_tokens_of_plain_attention(target, steps):
    model = make_model()
    layers = CompressedLayers(model.config, target)
    check_tokens(model, layers, steps)
    # Pages before a window are freed: all groups use fewer pages of 4 tokens than one full cache.
    assert layers.manager.num_pages - layers.manager.num_free_pages < 18
