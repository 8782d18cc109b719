"""DeepSeek V3.2 with random weights: tokens are those of transformers' plain attention.

Each attention layer is replaced: its keys go to a cache of latent rows and one of index keys, and ``index_scores``,
``top_rows`` and ``attention`` do the rest. Queries are absorbed: they are multiplied by the projection of keys.
"""

import types

import pytest
import torch
from transformers import DeepseekV32Config, DeepseekV32ForCausalLM
from transformers.models.deepseek_v32.modeling_deepseek_v32 import (
    apply_rotary_pos_emb,
    apply_rotary_pos_emb_interleave,
)

import kvcache

PROMPT, STEPS, CHOSEN = 40, 32, 16


def make_model():
    torch.manual_seed(7)
    config = DeepseekV32Config(
        vocab_size=211, hidden_size=64, intermediate_size=64, moe_intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, n_shared_experts=1, n_routed_experts=4, n_group=1, topk_group=1,
        num_experts_per_tok=2, kv_lora_rank=32, q_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16,
        v_head_dim=16, index_topk=CHOSEN, index_head_dim=32, index_n_heads=32, first_k_dense_replace=1,
        max_position_embeddings=256, initializer_range=0.3, bos_token_id=None, eos_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    return DeepseekV32ForCausalLM(config).eval()


class SparseLayers:
    """The caches of a model, and the attention of its layers over them."""

    def __init__(self, config):
        self.config = config
        self.latent = self._make_cache(config.kv_lora_rank + config.qk_rope_head_dim)
        self.index = self._make_cache(config.index_head_dim)
        ops, params = kvcache.ops, self.latent.params
        self.appends = [ops.append(cache.params) for cache in (self.latent, self.index)]
        self.score = ops.index_scores(
            self.index.params, config.index_n_heads, relu=True, sum_heads=True, weights=True
        )
        self.choose = ops.top_rows(params, CHOSEN)
        self.attend = ops.attention(params, config.num_attention_heads, value_dim=config.kv_lora_rank, rows=True)

    def _make_cache(self, size):
        params = kvcache.KVCacheParams(
            "f32", 1, size, page_size=16, total_num_layers=self.config.num_hidden_layers, is_mla=True
        )
        return kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=128, num_pages=9)

    def run(self, model, tokens, position):
        """The logits of the last of some new tokens."""
        for cache in (self.latent, self.index):
            if position:
                cache.grow("a", tokens[0].numpy())
            else:
                cache.claim("a", tokens[0].numpy())
        self.steps = [cache.inputs(["a"]) for cache in (self.latent, self.index)]
        self.length = position + tokens.shape[1]
        logits = model(tokens, position_ids=torch.arange(position, self.length)[None], use_cache=False).logits
        for cache in (self.latent, self.index):
            cache.step(["a"])
        return logits[0, -1]

    def choose_rows(self, layer, module, hidden, q_resid, rotary):
        """The rows of the chosen tokens of each new token."""
        q = module.wq_b(q_resid).view(*hidden.shape[:2], module.n_heads, module.head_dim)
        k = module.k_norm(module.wk(hidden)).unsqueeze(2)
        rope = module.qk_rope_head_dim
        q_rope, k_rope = apply_rotary_pos_emb(q[..., :rope], k[..., :rope], *rotary, unsqueeze_dim=2)
        q = torch.cat([q_rope, q[..., rope:]], -1)[0].contiguous()
        self.appends[1](self.steps[1], layer, torch.cat([k_rope, k[..., rope:]], -1)[0].contiguous())
        weights = module.weights_proj(hidden)[0] * (module.n_heads**-0.5 * module.softmax_scale)
        scores = torch.empty(len(q), self.length)
        self.score(self.steps[1], layer, q, weights=weights.contiguous(), out=scores)
        rows = torch.empty(len(q), CHOSEN, dtype=torch.int32)
        self.choose(self.steps[0], scores, out=rows)
        return rows

    def attend_layer(self, module, hidden, rotary):
        config, layer = self.config, module.layer_idx
        q_resid = module.q_a_layernorm(module.q_a_proj(hidden))
        q = module.q_b_proj(q_resid).view(*hidden.shape[:2], -1, config.qk_head_dim).transpose(1, 2)
        content, k_rope = module.kv_a_proj_with_mqa(hidden).split([config.kv_lora_rank, config.qk_rope_head_dim], -1)
        q_rope, k_rope = apply_rotary_pos_emb_interleave(
            q[..., config.qk_nope_head_dim :], k_rope.unsqueeze(1), *rotary
        )
        latent = torch.cat([module.kv_a_layernorm(content), k_rope[:, 0]], -1)[0]
        self.appends[0](self.steps[0], layer, latent[:, None].contiguous())
        expand = module.kv_b_proj.weight.view(config.num_attention_heads, -1, config.kv_lora_rank)
        to_keys, to_values = expand.split([config.qk_nope_head_dim, config.v_head_dim], 1)
        absorbed = torch.einsum("hsd,hdc->shc", q[0, ..., : config.qk_nope_head_dim], to_keys)
        q = torch.cat([absorbed, q_rope[0].transpose(0, 1)], -1).contiguous()
        rows = self.choose_rows(layer, module.indexer, hidden, q_resid, rotary)
        out = torch.empty(len(q), config.num_attention_heads, config.kv_lora_rank)
        self.attend(self.steps[0], layer, q, out=out, scale=module.scaling, rows=rows)
        values = torch.einsum("shc,hvc->shv", out, to_values)
        return module.o_proj(values.reshape(1, len(q), -1))


@pytest.mark.slow
@torch.no_grad()
def test_deepseek_v32_generates_the_tokens_of_plain_attention():
    model = make_model()
    prompt = torch.randint(0, model.config.vocab_size, (1, PROMPT))
    expected = model.generate(prompt, max_new_tokens=STEPS, do_sample=False)[0, PROMPT:].tolist()
    layers = SparseLayers(model.config)
    for layer in model.model.layers:

        def forward(module, hidden_states, position_embeddings, **_):
            return layers.attend_layer(module, hidden_states, position_embeddings), None

        layer.self_attn.forward = types.MethodType(forward, layer.self_attn)
    tokens, position, found = prompt, 0, []
    for _ in range(STEPS):
        token = int(layers.run(model, tokens, position).argmax())
        position += tokens.shape[1]
        tokens = torch.tensor([[token]])
        found.append(token)
    assert found == expected
    assert len(set(found)) > 4  # A model that repeats itself would agree by chance.
