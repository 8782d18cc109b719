"""Models with random weights, as files, and their tokens with transformers."""

import functools

VOCABULARY = 97
MAX_TOKENS = 10
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "tie_word_embeddings": False,
}
WINDOW = {"sliding_window": 24}
GEMMA = WINDOW | {"query_pre_attn_scalar": 32, "tie_word_embeddings": True}
# The last five layers share the caches of earlier ones.
SHARED = GEMMA | {
    "num_hidden_layers": 10, "num_kv_shared_layers": 5, "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 2,
    "intermediate_size": [96] * 10, "activation_sparsity_pattern": [0.0] * 10, "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size_per_layer_input": 16, "laurel_rank": 8, "altup_num_inputs": 2,
}  # fmt: skip
# The sizes of latent rows that vLLM accepts are 320, 512 and 576.
LATENT = {
    "kv_lora_rank": 256, "q_lora_rank": 16, "qk_rope_head_dim": 64, "qk_nope_head_dim": 16,
    "v_head_dim": 16, "head_dim": 64, "num_key_value_heads": 4, "first_k_dense_replace": 2, "n_routed_experts": 4,
    "num_experts_per_tok": 4, "n_group": 1, "topk_group": 1, "topk_method": "greedy",
    "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64,
        "mscale": 0.707, "mscale_all_dim": 0.707,
    },
}  # fmt: skip
MODELS = {
    "llama": ("LlamaConfig", {}),
    "llama-64": ("LlamaConfig", {"head_dim": 64}),
    "qwen3": ("Qwen3Config", {"num_key_value_heads": 1}),
    "mistral": ("MistralConfig", WINDOW),
    "gemma2": ("Gemma2Config", GEMMA | {"attn_logit_softcapping": 2.0}),
    "gemma3": ("Gemma3TextConfig", GEMMA | {"num_hidden_layers": 6}),
    "gemma3n": ("Gemma3nTextConfig", SHARED),
    "deepseek": ("DeepseekV2Config", LATENT),
    "deepseek-512": ("DeepseekV2Config", LATENT | {"kv_lora_rank": 512}),
}


def make_prompts(lengths=(5, 37, 1, 70, 33, 16), seed=1):
    """Prompts of ids, more than run at once; the last begins as the fourth."""
    import random

    generator = random.Random(seed)
    prompts = [[generator.randrange(2, VOCABULARY) for _ in range(n)] for n in lengths]
    return [*prompts, prompts[3][:48] + prompts[0]]


def save(name, folder, dtype):
    """Writes a model, and returns the tokens that transformers generates greedily."""
    import torch
    import transformers

    kind, options = MODELS[name]
    config = getattr(transformers, kind)(**SIZES | options)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
            if config.tie_word_embeddings and parameter is model.get_input_embeddings().weight:
                parameter.data *= 0.05  # otherwise each token repeats
        elif parameter.numel() == config.num_attention_heads:
            torch.nn.init.normal_(parameter)  # sinks
    model.eval().to(getattr(torch, dtype)).save_pretrained(folder)
    tokens = generate_tokens(folder, make_prompts())
    assert len({token for each in tokens for token in each}) > 20, tokens
    return tokens


def generate_tokens(folder, prompts, max_tokens=MAX_TOKENS):
    """Generates tokens greedily with transformers."""
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype="auto"
    )
    tokens = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        mask = torch.ones_like(ids)
        made = model.generate(ids, attention_mask=mask, max_new_tokens=max_tokens, do_sample=False)
        tokens.append(made[0, len(prompt) :].tolist())
    return tokens


def save_tokenizer(folder):
    """Writes a tokenizer whose words are ``w0``, ``w1`` and so on."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {f"w{i}": i for i in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0").save_pretrained(folder)


@functools.cache
def get_model(name, root, run_forked, dtype="float32"):
    """The folder of a model, and the tokens of transformers."""
    folder = root / f"{name}-{dtype}"
    return folder, run_forked(save, name, folder, dtype, log=root / f"{name}-{dtype}.log")
