"""Sparse models with random weights: the tokens of transformers' plain attention, on paged caches.

Queries of latent attention are absorbed: they are multiplied by the projection of keys. Scores in f32 differ from those
of the reference by rounding, so the tokens could differ where two scores at the threshold are within the bound of their
errors. With these weights none are.
"""

import pytest
import torch
from sparse_models import STEPS, begin_step, check_tokens, make_manager
from transformers import (
    DeepseekV32Config,
    DeepseekV32ForCausalLM,
    GlmMoeDsaConfig,
    GlmMoeDsaForCausalLM,
)
from transformers.models.deepseek_v32.modeling_deepseek_v32 import (
    apply_rotary_pos_emb,
    apply_rotary_pos_emb_interleave,
)
from transformers.models.minimax_m3_vl import modeling_minimax_m3_vl as minimax

import kvcache

CHOSEN = 16
COMMON = {
    "vocab_size": 211, "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 256,
    "initializer_range": 0.3, "bos_token_id": None, "eos_token_id": None, "attn_implementation": "eager",
}  # fmt: skip
LATENT = COMMON | {
    "num_key_value_heads": 4, "intermediate_size": 64, "moe_intermediate_size": 32, "n_shared_experts": 1,
    "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2, "kv_lora_rank": 32, "q_lora_rank": 32,
    "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16, "index_topk": CHOSEN, "index_head_dim": 32,
    "index_n_heads": 32, "first_k_dense_replace": 1,
}  # fmt: skip


def make_model(kind, config):
    torch.manual_seed(7)
    return kind(config).eval()


class IndexedLayers:
    """Latent attention to the tokens that an indexer chooses: DeepSeek V3.2 and GLM.

    ``rotate`` is the rope of the indexer. Index keys are in a group of their own beside latent rows. A layer of GLM may
    reuse the choice of the layer before.
    """

    def __init__(self, config, rotate, target):
        self.config, self.rotate = config, rotate
        layers, rank = config.num_hidden_layers, config.kv_lora_rank
        self.manager = make_manager((layers, rank + config.qk_rope_head_dim, {}), (layers, config.index_head_dim, {}))
        latent, index = (group.params for group in self.manager.params.groups)
        ops, heads, where = kvcache.ops, config.num_attention_heads, {"target": target}
        self.append_latent, self.append_index = ops.append(latent, **where), ops.append(index, **where)
        self.score = ops.index_scores(index, config.index_n_heads, relu=True, sum_heads=True, weights=True, **where)
        self.choose = ops.top_rows(latent, CHOSEN, **where)
        self.attend_rows = ops.attention(latent, heads, value_dim=rank, rows=True, **where)

    def begin(self, tokens, position):
        self.latent, self.index = begin_step(self.manager, tokens, position)
        self.length = position + len(tokens)

    def end(self):
        self.manager.step(["a"])

    def choose_rows(self, layer, module, hidden, q_resid, rotary):
        """The rows of the chosen tokens of each new token."""
        q = module.wq_b(q_resid).view(*hidden.shape[:2], module.n_heads, module.head_dim)
        k = module.k_norm(module.wk(hidden)).unsqueeze(2)
        rope = module.qk_rope_head_dim
        q_rope, k_rope = self.rotate(q[..., :rope], k[..., :rope], *rotary, unsqueeze_dim=2)
        q = torch.cat([q_rope, q[..., rope:]], -1)[0].contiguous()
        self.append_index(self.index, layer, torch.cat([k_rope, k[..., rope:]], -1)[0].contiguous())
        weights = module.weights_proj(hidden)[0] * (module.n_heads**-0.5 * module.softmax_scale)
        scores = torch.empty(len(q), self.length)
        self.score(self.index, layer, q, weights=weights.contiguous(), out=scores)
        rows = torch.empty(len(q), CHOSEN, dtype=torch.int32)
        self.choose(self.latent, scores, out=rows)
        return rows

    def attend(self, module, hidden_states, position_embeddings, prev_topk_indices=None, **_):
        config, layer, hidden = self.config, module.layer_idx, hidden_states
        q_resid = module.q_a_layernorm(module.q_a_proj(hidden))
        q = module.q_b_proj(q_resid).view(*hidden.shape[:2], -1, config.qk_head_dim).transpose(1, 2)
        content, k_rope = module.kv_a_proj_with_mqa(hidden).split([config.kv_lora_rank, config.qk_rope_head_dim], -1)
        q_rope, k_rope = apply_rotary_pos_emb_interleave(
            q[..., config.qk_nope_head_dim :], k_rope.unsqueeze(1), *position_embeddings
        )
        latent = torch.cat([module.kv_a_layernorm(content), k_rope[:, 0]], -1)[0]
        self.append_latent(self.latent, layer, latent[:, None].contiguous())
        expand = module.kv_b_proj.weight.view(config.num_attention_heads, -1, config.kv_lora_rank)
        to_keys, to_values = expand.split([config.qk_nope_head_dim, config.v_head_dim], 1)
        absorbed = torch.einsum("hsd,hdc->shc", q[0, ..., : config.qk_nope_head_dim], to_keys)
        q = torch.cat([absorbed, q_rope[0].transpose(0, 1)], -1).contiguous()
        rows = prev_topk_indices
        if module.indexer is not None:
            rows = self.choose_rows(layer, module.indexer, hidden, q_resid, position_embeddings)
        out = torch.empty(len(q), config.num_attention_heads, config.kv_lora_rank)
        self.attend_rows(self.latent, layer, q, out=out, scale=module.scaling, rows=rows)
        values = torch.einsum("shc,hvc->shv", out, to_values)
        return module.o_proj(values.reshape(1, len(q), -1)), None, rows


@pytest.mark.slow
@pytest.mark.parametrize(("target", "steps"), STEPS)
@torch.no_grad()
def test_deepseek_v32_generates_the_tokens_of_plain_attention(target, steps):
    model = make_model(DeepseekV32ForCausalLM, DeepseekV32Config(num_hidden_layers=2, **LATENT))
    layers = IndexedLayers(model.config, apply_rotary_pos_emb, target)
    attend = layers.attend
    layers.attend = lambda *arguments, **named: attend(*arguments, **named)[:2]
    check_tokens(model, layers, steps)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "steps"), STEPS)
@torch.no_grad()
def test_glm_moe_dsa_generates_the_tokens_of_plain_attention(target, steps):
    kinds = ["full", "shared", "full"]
    model = make_model(GlmMoeDsaForCausalLM, GlmMoeDsaConfig(num_hidden_layers=3, indexer_types=kinds, **LATENT))
    check_tokens(model, IndexedLayers(model.config, apply_rotary_pos_emb_interleave, target), steps)


class BlockLayers:
    """Attention to blocks of tokens that each head of the cache chooses: MiniMax M3."""

    def __init__(self, config, target):
        self.config = config
        layers, heads = config.num_hidden_layers, config.num_key_value_heads
        keys = {"n_kv_heads": heads, "is_mla": False}
        self.manager = make_manager((layers, config.head_dim, keys), (layers, config.index_head_dim, {}))
        cache, index = (group.params for group in self.manager.params.groups)
        ops, width, where = kvcache.ops, config.index_block_size, {"target": target}
        self.append, self.append_index = ops.append(cache, **where), ops.append(index, **where)
        self.score = ops.index_scores(index, config.index_n_heads, block=width, **where)
        self.columns = config.index_topk_blocks * width
        self.choose = ops.top_rows(
            cache, config.index_topk_blocks, width=width, expand=True, last=config.index_local_blocks, **where
        )
        self.attend_all = ops.attention(cache, config.num_attention_heads, **where)
        self.attend_rows = ops.attention(cache, config.num_attention_heads, rows="heads", **where)

    def begin(self, tokens, position):
        self.inputs, self.index = begin_step(self.manager, tokens, position)
        self.length = position + len(tokens)

    def end(self):
        self.manager.step(["a"])

    def choose_rows(self, layer, module, hidden, rotary):
        """The rows of the tokens of the chosen blocks, of each new token and head."""
        q, k = (
            norm(project(hidden).view(*hidden.shape[:2], -1, module.head_dim))
            for norm, project in ((module.q_norm, module.q_proj), (module.k_norm, module.k_proj))
        )
        cos, sin = (each[..., : module.head_dim] for each in rotary)
        q, k = minimax.apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=2)
        self.append_index(self.index, layer, k[0].contiguous())
        blocks = -(-self.length // self.config.index_block_size)
        scores = torch.empty(q.shape[1], module.num_heads, blocks)
        self.score(self.index, layer, q[0].contiguous(), out=scores)
        rows = torch.empty(*scores.shape[:2], self.columns, dtype=torch.int32)
        self.choose(self.inputs, scores, out=rows)
        return rows

    def attend(self, module, hidden_states, position_embeddings, **_):
        shape, layer = (*hidden_states.shape[:2], -1, module.head_dim), module.layer_idx
        q = module.q_norm(module.q_proj(hidden_states).view(shape))
        k = module.k_norm(module.k_proj(hidden_states).view(shape))
        q, k = minimax.apply_rotary_pos_emb(q, k, *position_embeddings, unsqueeze_dim=2)
        v = module.v_proj(hidden_states).view(shape)
        self.append(self.inputs, layer, k[0].contiguous(), v[0].contiguous())
        q, out = q[0].contiguous(), torch.empty_like(q[0])
        if module.indexer is None:
            self.attend_all(self.inputs, layer, q, out=out, scale=module.scaling)
        else:
            rows = self.choose_rows(layer, module.indexer, hidden_states, position_embeddings)
            self.attend_rows(self.inputs, layer, q, out=out, scale=module.scaling, rows=rows)
        return module.o_proj(out.reshape(1, len(q), -1)), None


@pytest.mark.slow
@pytest.mark.parametrize(("target", "steps"), STEPS)
@torch.no_grad()
def test_minimax_m3_generates_the_tokens_of_plain_attention(target, steps):
    config = minimax.MiniMaxM3VLTextConfig(
        num_hidden_layers=3, layer_types=["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
        mlp_layer_types=["dense", "sparse", "sparse"], num_key_value_heads=2, head_dim=32, rotary_dim=16,
        intermediate_size=32, dense_intermediate_size=64, shared_intermediate_size=32, num_local_experts=4,
        num_experts_per_tok=2, index_n_heads=2, index_head_dim=32, index_block_size=8, index_topk_blocks=3, **COMMON,
    )  # fmt: skip
    model = make_model(minimax.MiniMaxM3VLForCausalLM, config)
    check_tokens(model, BlockLayers(config, target), steps)
