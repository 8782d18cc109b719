"""Tests of models of transformers with random weights: equal tokens with a PagedCache and without."""

import copy

import pytest
import torch
import transformers
from random_models import (
    INDEXED,
    MODELS,
    SIZES,
    UNPADDED,
    check,
    forward,
    generate,
    make_cache,
    make_model,
    make_prompts,
    prompts,
)

import kvcache
from kvcache.transformers import PagedCache


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lengths", [(21,), (5, 19, 1)], ids=["one", "padded"])
def test_tokens(name, lengths):
    check(name, make_prompts(name, *lengths))


@pytest.mark.parametrize("name", UNPADDED)
def test_padding_changes_no_blocks_or_entries_of_a_row(name):
    model, inputs = make_model(name), prompts(7, 30, 1)
    options = {"max_new_tokens": 32, "prefill_chunk_size": 5}
    tokens = generate(model, inputs, make_cache(model), **options)
    for row, length in enumerate((7, 30, 1)):
        alone = {name: each[row : row + 1, -length:] for name, each in inputs.items()}
        wanted = generate(make_model(name, "eager"), alone, max_new_tokens=32)
        assert tokens[row, 30 - length :].tolist() == wanted[0].tolist()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"share_prefixes": True}, "no shared prefixes: the states of its open groups are not in pages"),
        ({"dtype": "fp8"}, "'dtype' to be f32, f16 or bf16 for a model with compressed entries, got f8E4M3FN"),
        ({"page_size": 12}, "'page_size' to be a multiple of 8, so that a page has whole entries, got 12"),
    ],
)
def test_compressed_entries_reject(options, message):
    with pytest.raises(ValueError, match=message):
        make_cache(make_model("deepseek_v4"), **options)


def test_compressed_entries_are_not_cropped():
    model = make_model("deepseek_v4")
    cache = make_cache(model)
    forward(model, cache)
    cache.crop(0)
    with pytest.raises(ValueError, match="expects no tokens to remove from the entries of deepseek_v4, got 2"):
        cache.crop(-2)
    assert cache.get_seq_length() == 6


WAYS = ["llama", "gemma3", "gpt_oss", "llama4", "gemma3n", "deepseek_v3", "glm_moe_dsa", "deepseek_v4"]


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 3, "num_return_sequences": 2},
        {"prefill_chunk_size": 5},
        {"prompt_lookup_num_tokens": 3},
    ],
    ids=["beams", "chunks", "lookup"],
)
def test_ways_of_generation(name, options):
    is_lookup = "prompt_lookup_num_tokens" in options
    if is_lookup and name == "deepseek_v4":
        pytest.skip("transformers does not crop the states of compressors")
    inputs = prompts(18) if is_lookup else make_prompts(name, 5, 18)
    if is_lookup:
        inputs["input_ids"][:, 9:14] = inputs["input_ids"][:, :5]
    check(name, inputs, **options)


def test_assistant():
    """Tests drafts of another model, some of which are rejected: the cache is cropped."""
    inputs = prompts(18)
    wanted = generate(make_model("llama", "eager"), inputs)
    for seed in (0, 3):
        assistant = make_model("llama", "eager", seed=seed)
        model = make_model("llama")
        tokens = generate(model, inputs, make_cache(model), assistant_model=assistant)
        assert tokens.tolist() == wanted.tolist()


def test_samples():
    inputs = prompts(7, 18)
    options = {"do_sample": True, "num_return_sequences": 2}
    torch.manual_seed(5)
    wanted = generate(make_model("llama", "eager"), inputs, **options)
    torch.manual_seed(5)
    model = make_model("llama")
    assert generate(model, inputs, make_cache(model), **options).tolist() == wanted.tolist()


@pytest.mark.parametrize("name", ["llama", "deepseek_v4"])
def test_a_second_question(name):
    first = make_prompts(name, 7, 18)
    model = make_model(name)
    cache = make_cache(model)
    tokens = generate(model, first, cache)
    more = torch.cat([tokens, prompts(6, 6, seed=2)["input_ids"]], dim=1)
    padding = torch.ones(2, more.shape[1] - first["attention_mask"].shape[1])
    mask = torch.cat([first["attention_mask"], padding.long()], dim=1)
    inputs = {"input_ids": more, "attention_mask": mask}
    wanted = generate(make_model(name, "eager"), inputs)
    assert generate(model, inputs, cache).tolist() == wanted.tolist()
    assert cache.get_seq_length() == wanted.shape[1] - 1
    if name == "deepseek_v4":
        cache.reset()
        assert generate(model, first, cache).tolist() == tokens.tolist()


@pytest.mark.parametrize("name", ["llama", "deepseek_v3"])
def test_shared_prefixes(name):
    model = make_model(name)
    cache = make_cache(model, share_prefixes=True)
    first = prompts(18)
    assert cache.start(first["input_ids"]) == 0
    generate(model, first, cache)
    cache.reset()
    ids = torch.cat([first["input_ids"], prompts(6, seed=3)["input_ids"]], dim=1).repeat(2, 1)
    ids[1, 10:] = 5
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    assert cache.start(**inputs) == 10  # the second row has no more of it
    wanted = generate(make_model(name, "eager"), inputs)
    assert generate(model, inputs, cache).tolist() == wanted.tolist()
    cache.reset()
    assert cache.start(first["input_ids"]) == 17  # one token is left to compute
    cache.reset()
    padded = prompts(3, 18)
    padded["input_ids"][1] = first["input_ids"][0]
    assert cache.start(**padded) == 15  # the padding of the first row
    wanted = generate(make_model(name, "eager"), padded)
    assert generate(model, padded, cache).tolist() == wanted.tolist()


def test_indexer_of_other_sizes_is_an_error():
    config = MODELS["deepseek_v32"][0](**SIZES | INDEXED | {"index_head_dim": 48})
    with pytest.raises(ValueError, match="'head_dim' to be a multiple of 32, got 48"):
        PagedCache(config, max_batch_size=1, max_seq_len=8)


def test_shared_prefixes_have_index_keys():
    """A page of the pool has 16 tokens of latent rows, or 12 of index keys."""
    model = make_model("deepseek_v32")
    cache = make_cache(model, share_prefixes=True)
    first = prompts(60)
    assert cache.start(first["input_ids"]) == 0
    generate(model, first, cache, max_new_tokens=1)
    cache.reset()
    ids = torch.cat([first["input_ids"], prompts(6, seed=5)["input_ids"]], dim=1)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    assert cache.start(ids) == 48
    wanted = generate(make_model("deepseek_v32", "eager"), inputs)
    assert generate(model, inputs, cache).tolist() == wanted.tolist()


def test_pages():
    """Beams share pages, padding takes none, and reset frees all."""
    model = make_model("llama")
    cache = make_cache(model)
    free = cache.manager.num_free_pages
    generate(model, prompts(1, 20), cache, max_new_tokens=2)
    assert free - cache.manager.num_free_pages == 1 + 6  # 2 and 21 tokens in pages of 4
    assert cache.nbytes == 7 * cache.manager.params.bytes_per_block
    cache.reset()
    assert cache.manager.num_free_pages == free and cache.get_seq_length() == 0
    generate(model, prompts(20), cache, num_beams=4, max_new_tokens=2)
    assert free - cache.manager.num_free_pages < 4 * 6


@pytest.mark.parametrize("name", ["llama", "gemma3n", "deepseek_v4"])
def test_copies_of_a_cache_continue_by_themselves(name):
    model, first = make_model(name), make_prompts(name, 5, 18)
    cache = make_cache(model)
    generate(model, first, cache, max_new_tokens=1)
    copied = copy.deepcopy(cache)
    mask = torch.cat([first["attention_mask"], torch.ones(2, 3, dtype=torch.long)], dim=1)
    for each, seed in ((cache, 2), (copied, 3)):
        ids = torch.cat([first["input_ids"], prompts(3, 3, seed=seed)["input_ids"]], dim=1)
        inputs = {"input_ids": ids, "attention_mask": mask}
        wanted = generate(make_model(name, "eager"), inputs)
        assert generate(model, inputs, each).tolist() == wanted.tolist()
    cache.reset()
    assert copied.get_seq_length() == wanted.shape[1] - 1


def test_a_copy_within_a_pass_leaves_the_pass_as_it_is():
    model, copies = make_model("llama"), []
    inputs = prompts(6)
    cache = make_cache(model)
    layer = model.model.layers[0]
    hook = layer.register_forward_hook(lambda *_: copies.append(copy.deepcopy(cache)))
    found = forward(model, cache, **inputs).logits
    hook.remove()
    torch.testing.assert_close(found, forward(model, make_cache(model), **inputs).logits)
    assert [each.get_seq_length() for each in (cache, *copies)] == [6, 6]
    assert [len(each.manager.tokens(each._rows[0])) for each in (cache, *copies)] == [6, 6]


@pytest.mark.parametrize("rows, message", [((0, 0, 2), r"rows in \[0, 2\), got 2"), ((-1, 0), r"rows in \[0, 2\), got -1")])
def test_wrong_rows_change_no_row(rows, message):
    model = make_model("llama")
    cache = make_cache(model)
    forward(model, cache)
    before = repr(cache), cache.manager.snapshot()
    with pytest.raises(ValueError, match=message):
        cache.reorder_cache(torch.tensor(rows))
    assert (repr(cache), cache.manager.snapshot()) == before
    cache.reorder_cache(torch.zeros(0, dtype=torch.long))
    assert cache.get_seq_length() == 0 and not cache.manager.snapshot().sequences


def test_autocast_converts_values_to_the_dtype_of_queries():
    logits = []
    for attention in ("kvcache", "eager"):
        model = make_model("llama", attention)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cache = make_cache(model) if attention == "kvcache" else None
            logits.append(forward(model, cache).logits[:, -1].float())
    torch.testing.assert_close(*logits, rtol=0.1, atol=0.1)


def test_cache_says_its_size():
    model = make_model("llama")
    cache = make_cache(model, dtype="fp8")
    empty = "PagedCache(dtype=f8E4M3FN, device=cpu, layers=2, page_size=4, pages=0 of 512, lengths=[])"
    assert repr(cache) == empty
    forward(model, cache, **prompts(5, 18))
    assert repr(cache).endswith("pages=7 of 512, lengths=[5, 18])")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_compiled_models_break_their_graphs(name, monkeypatch):
    model, inputs = make_model(name), prompts(5, 18)
    wanted = generate(make_model(name, "eager"), inputs)
    eager = model.forward
    monkeypatch.setattr(model, "forward", torch.compile(eager, backend="eager"))
    assert generate(model, inputs, make_cache(model)).tolist() == wanted.tolist()
    torch.compiler.reset()
    monkeypatch.setattr(model, "forward", torch.compile(eager, backend="eager", fullgraph=True))
    with pytest.raises(Exception, match="assigns pages in Python.*leave out fullgraph=True"):
        generate(model, inputs, make_cache(model))
    torch.compiler.reset()


def test_rows():
    model = make_model("llama")
    cache = make_cache(model)
    with torch.no_grad():
        logits = model(**prompts(6, 9), past_key_values=cache).logits[:, -1]
        cache.batch_repeat_interleave(2)
        assert cache.batch_size == 4
        cache.batch_select_indices(torch.tensor([3, 0]))
        cache.crop(-1)
        last = prompts(6, 9)["input_ids"][:, -1:].flip(0)
        mask = prompts(6, 9)["attention_mask"].flip(0)
        again = model(input_ids=last, attention_mask=mask, past_key_values=cache).logits[:, -1]
    torch.testing.assert_close(again, logits.flip(0), rtol=1e-4, atol=1e-4)


# The largest difference of logits to a cache of f32, relative to the largest logit.
ERRORS = {"bf16": 0.02, "f8E4M3FN": 0.12, "fp8": 0.12, "f8E5M2": 0.2, "i8": 0.03, torch.float16: 0.003}


@pytest.mark.parametrize(
    "name, dtype",
    [
        *(("llama", dtype) for dtype in ERRORS),
        *(("deepseek_v3", dtype) for dtype in ("bf16", "f8E4M3FN", "i8")),
        *((name, "f8E4M3FN") for name in ("gemma2", "gpt_oss")),
    ],
)
def test_formats(name, dtype):
    model = make_model(name)
    inputs = prompts(24)
    with torch.no_grad():
        wanted = make_model(name, "eager")(**inputs).logits
        cache = make_cache(model, dtype=dtype)
        found = model(**inputs, past_key_values=cache).logits
    error = ((found - wanted).abs().max() / wanted.abs().max()).item()
    print(f"{name} {dtype}: {error:.4f}")
    assert ERRORS[dtype] / 400 < error < ERRORS[dtype]


def test_a_model_of_bf16():
    model = make_model("llama", dtype=torch.bfloat16)
    inputs = prompts(3, 18)
    with torch.no_grad():
        wanted = make_model("llama", "eager", torch.bfloat16)(**inputs).logits[:, -1]
        found = model(**inputs, past_key_values=make_cache(model, dtype="bf16")).logits[:, -1]
    torch.testing.assert_close(found, wanted, rtol=0.05, atol=0.3)


def test_padding_on_the_right():
    model = make_model("llama")
    cache = make_cache(model)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])
    with pytest.raises(ValueError, match="padding on the left .* padding_side='left'"):
        forward(model, cache, attention_mask=mask)
    assert cache.get_seq_length() == 0 and forward(model, cache).logits.isfinite().all()


@pytest.mark.parametrize(
    "mask, message",
    [
        (torch.ones(2, 8), "the same padding as before"),
        (torch.tensor([[0, 0, 1, 0, 1, 1, 1, 1], [1] * 8]), "padding on the left"),
        (torch.ones(2, 7), r"'attention_mask' of \[2, 8\], got \[2, 7\]"),
    ],
)
def test_masks_of_a_later_step(mask, message):
    model = make_model("llama")
    cache = make_cache(model)
    forward(model, cache)
    with pytest.raises(ValueError, match=message):
        forward(model, cache, input_ids=torch.full((2, 2), 3), attention_mask=mask.long())


def test_wrong_calls():
    model, eager = make_model("llama"), make_model("llama", "eager")
    cache = make_cache(model)
    with pytest.raises(ValueError, match=r"call model.set_attn_implementation\('kvcache'\)"):
        forward(eager, make_cache(eager))
    with pytest.raises(ValueError, match="needs a PagedCache: .* without use_cache=False"):
        forward(model, None, use_cache=False)
    with pytest.raises(ValueError, match=r"use torch.no_grad\(\)"):
        model(**prompts(3), past_key_values=cache)
    with pytest.raises(ValueError, match="'tokens_to_remove' not to be positive, got 1"):
        cache.crop(1)
    with pytest.raises(ValueError, match="share_prefixes=True"):
        cache.start(prompts(3)["input_ids"])
    forward(model, cache)
    with pytest.raises(ValueError, match="expects 2 rows, as before, got 1"):
        forward(model, cache, input_ids=torch.tensor([[3]]), attention_mask=None)
    with pytest.raises(ValueError, match="'max_seq_len'"):
        small = make_cache(model, max_seq_len=5)
        forward(model, small)
    with pytest.raises(ValueError, match="'max_batch_size'"):
        forward(model, make_cache(model, max_batch_size=1))
    with pytest.raises(ValueError, match="expects keys of"):
        forward(model, make_cache(make_model("gpt_oss")))


@pytest.mark.parametrize(
    "config, message",
    [
        (transformers.Qwen3NextConfig(), "no layers of linear_attention"),
        (transformers.T5Config(), "cross attention"),
        (transformers.MiniCPM3Config(), "latent rows of deepseek_v2, deepseek_v3, .* only"),
    ],
    ids=lambda value: getattr(value, "model_type", None),
)
def test_other_models(config, message):
    with pytest.raises(ValueError, match=message):
        PagedCache(config, max_batch_size=1, max_seq_len=8)


@pytest.mark.parametrize("name", ["Falcon", "Bloom", "Mpt"])
def test_cache_rejects_models_without_attention_functions(name):
    message = rf"can't be used with {name}ForCausalLM: the model takes no attention function"
    with pytest.raises(ValueError, match=message):
        PagedCache(getattr(transformers, f"{name}Config")(), max_batch_size=1, max_seq_len=8)


def test_models_that_change_cached_keys_are_an_error():
    """JetMoe repeats keys after the cache has them."""
    config = transformers.JetMoeConfig(**SIZES, kv_channels=8, num_local_experts=4)
    model = transformers.JetMoeForCausalLM(config).eval()
    model.set_attn_implementation("kvcache")
    with pytest.raises(ValueError, match="JetMoeAttention changes keys or values after it has cached them"):
        generate(model, prompts(5), make_cache(model))


def test_cache_says_how_other_prompts_begin():
    model = make_model("llama")
    cache, inputs = make_cache(model), prompts(7, 7)
    wanted = generate(model, inputs, cache)
    message = r"expects tokens after the \d+ in the cache, got none: .* reset\(\) it"
    length = cache.get_seq_length()
    same = {"input_ids": torch.ones(2, length, dtype=torch.long)}
    with pytest.raises(ValueError, match=message), torch.no_grad():
        model(same["input_ids"][:, :0], past_key_values=cache)
    with pytest.raises(ValueError, match=r"expects 2 rows, as before, got 1: .* reset\(\) it"):
        generate(model, {"input_ids": torch.ones(1, length + 3, dtype=torch.long)}, cache)
    cache.reset()
    assert generate(model, inputs, cache).tolist() == wanted.tolist()


def test_wrong_options():
    config = make_model("llama").config
    with pytest.raises(ValueError, match="'page_size' to be positive"):
        PagedCache(config, max_batch_size=1, max_seq_len=8, page_size=0)
    with pytest.raises(TypeError, match="'share_prefixes' to be True or False"):
        PagedCache(config, max_batch_size=1, max_seq_len=8, share_prefixes=1)
    with pytest.raises(ValueError, match="'target' to be for memory of cpu, got 'cuda:sm_90a'"):
        PagedCache(config, max_batch_size=1, max_seq_len=8, target="cuda:sm_90a")
    with pytest.raises(ValueError, match="'device' to be a CPU or a CUDA device, got mps"):
        PagedCache(config, max_batch_size=1, max_seq_len=8, device="mps")
    with pytest.raises(TypeError, match="'config' to be a"):
        PagedCache(None, max_batch_size=1, max_seq_len=8)
    assert kvcache.transformers.NAME == "kvcache"
