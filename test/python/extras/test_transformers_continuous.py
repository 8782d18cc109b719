"""Tests of continuous batching, ``generate_batch``, with our attention on the cache of transformers."""

import pytest
import torch
import transformers
from random_models import generate, make_model
from transformers.integrations.eager_paged import eager_paged_attention_forward

from kvcache.transformers import continuous, install

PROMPTS = [[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [3, 4, 5], [20, 21, 22, 23, 24]]


@pytest.fixture
def calls(monkeypatch):
    """The number of queries and of sequences of each call; the name has transformers' function afterwards."""
    seen = []
    attend = continuous.flash_attn_varlen_func

    def record(q, k, v, cu_seqlens_q, *rest, **options):
        seen.append((len(q), len(cu_seqlens_q) - 1))
        return attend(q, k, v, cu_seqlens_q, *rest, **options)

    monkeypatch.setattr(continuous, "flash_attn_varlen_func", record)
    install(continuous=True)
    yield seen
    transformers.AttentionInterface.register("paged|eager", eager_paged_attention_forward)


def generate_batch(name, **options):
    model = make_model(name, "paged|eager")
    options = {"max_new_tokens": 12, "do_sample": False, "eos_token_id": -1, "pad_token_id": 0} | options
    # Without these numbers, the cache takes nearly all memory.
    sizes = transformers.ContinuousBatchingConfig(page_size=16, num_blocks=16, max_batch_tokens=64)
    found = model.generate_batch(
        inputs=PROMPTS,
        generation_config=transformers.GenerationConfig(**options),
        continuous_batching_config=sizes,
    )
    return [found[key].generated_tokens for key in sorted(found)]


def make_inputs(prompt):
    return {"input_ids": torch.tensor([prompt]), "attention_mask": torch.ones(1, len(prompt), dtype=torch.long)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2"])
def test_requests_get_the_tokens_of_generate(name, calls):
    """Mistral and Gemma 2 have windows of 8 tokens, Gemma 2 a soft cap."""
    model = make_model(name, "eager")
    wanted = [generate(model, make_inputs(prompt), max_new_tokens=12)[0, len(prompt):].tolist() for prompt in PROMPTS]
    assert generate_batch(name) == wanted
    assert len(calls) == 2 * 12 and calls[0][0] >= 20 and calls[-1][0] >= 3


def test_models_with_sinks_and_other_caches_are_errors(calls):
    model = make_model("llama", "paged|eager")
    with torch.no_grad(), pytest.raises(ValueError, match="needs the cache of generate_batch: for generate, use 'kvcache'"):
        model(**make_inputs([3, 4]))
    module = make_model("gpt_oss").model.layers[0].self_attn
    with pytest.raises(ValueError, match="GptOssAttention has sinks: use generate instead"):
        continuous.compute_continuous_attention(module, None, None, None, None, cache=object())
    with pytest.raises(TypeError, match="'continuous' to be True or False"):
        install(continuous=1)
    assert not calls
