"""Models of transformers with random weights, prompts for them, and their caches."""

import functools

import torch
import transformers

from kvcache.transformers import PagedCache, install

install()

VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None, "tie_word_embeddings": False,
}
# All experts for each token: otherwise a small difference could choose others.
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 4}
LATENT = {
    "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 4,
    "n_group": 1, "topk_group": 1, "moe_intermediate_size": 16, "first_k_dense_replace": 1,
    "n_shared_experts": 1,
}
# Eight tokens of prompts of 19 and more are chosen. Their scores would be equal where those of all heads are below 0, which
# 16 heads make rare.
INDEXED = LATENT | {"index_topk": 8, "index_n_heads": 16, "index_head_dim": 32}
BLOCKS = {
    "head_dim": 16, "rotary_dim": 8, "layer_types": ["full_attention", "minimax_m3_sparse"],
    "dense_intermediate_size": 48, "shared_intermediate_size": 16, "index_n_heads": 2, "index_head_dim": 32,
    "index_block_size": 4, "index_topk_blocks": 3, **EXPERTS,
}
# The last two layers have entries of 4 and of 8 tokens. An indexer chooses two of those of 4.
ENTRIES = {
    "num_hidden_layers": 3, "num_key_value_heads": 1, "head_dim": 32, "q_lora_rank": 16, "partial_rotary_factor": 0.25,
    "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
    "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 8}, "sliding_window": 6,
    "index_topk": 2, "index_n_heads": 16, "index_head_dim": 32, "o_groups": 2, "o_lora_rank": 16, "hc_mult": 2,
    "mlp_layer_types": ["moe"] * 3, "moe_intermediate_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 4,
}
GEMMA = {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8}
CHUNKS = {
    "head_dim": 16, "attention_chunk_size": 8, "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0],
    "intermediate_size_mlp": 48, "num_local_experts": 2, "num_experts_per_tok": 2,
}
# The last three layers share the keys of layers 3 and 4.
SHARED = {
    "num_hidden_layers": 8, "num_kv_shared_layers": 3, "intermediate_size": [48] * 8,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 2, "altup_num_inputs": 2,
    "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": VOCABULARY, "laurel_rank": 8,
    "activation_sparsity_pattern": [0.0] * 8,
}

MODELS = {
    "llama": (transformers.LlamaConfig, {}),
    "qwen3": (transformers.Qwen3Config, {"head_dim": 16}),
    "mistral": (transformers.MistralConfig, {"sliding_window": 8}),
    "gemma2": (transformers.Gemma2Config, GEMMA | {"attn_logit_softcapping": 2.0}),
    "gemma3": (transformers.Gemma3TextConfig, GEMMA | {"num_hidden_layers": 6}),
    "gpt_oss": (transformers.GptOssConfig, EXPERTS | {"head_dim": 16, "sliding_window": 8}),
    "llama4": (transformers.Llama4TextConfig, CHUNKS),
    "gemma3n": (transformers.Gemma3nTextConfig, GEMMA | SHARED),
    "deepseek_v3": (transformers.DeepseekV3Config, LATENT),
    "deepseek_v2": (transformers.DeepseekV2Config, LATENT | {"topk_method": "greedy"}),
}
# Older versions of transformers lack some of these.
RECENT = {
    "deepseek_v32": ("DeepseekV32Config", INDEXED),
    "glm_moe_dsa": ("GlmMoeDsaConfig", INDEXED | {"num_hidden_layers": 3, "indexer_types": ["full", "shared", "full"]}),
    "hy_v4": ("HYV4Config", INDEXED),
    "minimax_m3": ("MiniMaxM3VLTextConfig", BLOCKS),
    "deepseek_v4": ("DeepseekV4Config", ENTRIES),
}
# Their own caches divide the columns of a batch into blocks, so padding would change them.
UNPADDED = ("minimax_m3", "deepseek_v4")
MODELS |= {
    name: (getattr(transformers, config), options)
    for name, (config, options) in RECENT.items()
    if hasattr(transformers, config)
}


@functools.cache
def make_model(name, attention="kvcache", dtype=torch.float32, seed=0):
    """A model with random weights and distinct logits."""
    kind, options = MODELS[name]
    config = kind(**SIZES | options)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
        elif parameter.numel() == config.num_attention_heads:
            torch.nn.init.normal_(parameter)  # sinks
    model = model.eval().to(dtype)
    model.set_attn_implementation(attention)
    return model


def prompts(*lengths, seed=1):
    """Ids with padding on the left, and their mask."""
    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths)
    ids = torch.randint(2, VOCABULARY, (len(lengths), longest), generator=generator)
    mask = torch.arange(longest) >= longest - torch.tensor(lengths)[:, None]
    return {"input_ids": ids * mask, "attention_mask": mask.long()}


def make_cache(model, **options):
    page_size = 8 if model.config.model_type == "deepseek_v4" else 4
    sizes = {"max_batch_size": 8, "max_seq_len": 256, "page_size": page_size} | options
    return PagedCache(model.config, **sizes)


def generate(model, inputs, cache=None, **options):
    options = {"max_new_tokens": 16, "do_sample": False} | options
    return model.generate(**inputs, past_key_values=cache, **options)


def make_prompts(name, *lengths):
    """Prompts, with padding if the model's own cache supports it."""
    return prompts(*(len(lengths) * [max(lengths)] if name in UNPADDED else lengths))


def forward(model, cache, **inputs):
    with torch.no_grad():
        return model(**prompts(4, 6) | inputs, past_key_values=cache)


def check(name, inputs, **options):
    """Checks tokens against the model's own cache and attention; returns the cache."""
    wanted = generate(make_model(name, "eager"), inputs, **options)
    model = make_model(name)
    cache = make_cache(model)
    tokens = generate(model, inputs, cache, **options)
    assert tokens.tolist() == wanted.tolist()
    assert wanted[:, -16:].unique().numel() > 1
    return cache
