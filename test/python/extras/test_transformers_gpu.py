"""Tests of models of transformers with a PagedCache for GPUs: emulated, without memory, and real."""

import numpy as np
import pytest
import torch
import transformers
from fake_gpu import DEVICE, Event, fake_gpu, fake_streams, move
from random_models import MODELS, SIZES, generate, make_cache, make_model, make_prompts

from kvcache.ops import selection
from kvcache.pages import inputs as step_inputs
from kvcache.transformers import PagedCache, cache, padding

NAMES = ["llama", "gemma2", "gpt_oss", "llama4", "gemma3n", "deepseek_v3"]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", [*NAMES, "glm_moe_dsa", "minimax_m3", "deepseek_v4"])
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_tokens_of_emulated_kernels(name, chip):
    inputs = make_prompts(name, 5, 19, 1)
    wanted = generate(make_model(name, "eager"), inputs, max_new_tokens=6)
    model = make_model(name)
    pages = make_cache(model, target=f"emulator:{chip}")
    assert generate(model, inputs, pages, max_new_tokens=6).tolist() == wanted.tolist()


def test_entries_are_counted_without_reading_lengths(monkeypatch):
    """The host does not read lengths in the memory of a GPU."""
    given = make_prompts("deepseek_v4", 30, 30)
    wanted = generate(make_model("deepseek_v4", "eager"), given, max_new_tokens=12)
    for module, name in ((step_inputs, "read_integers"), (selection, "read_if_integers")):
        monkeypatch.setattr(module, name, lambda array: array if isinstance(array, np.ndarray) else None)
    model = make_model("deepseek_v4")
    assert generate(model, given, make_cache(model), max_new_tokens=12).tolist() == wanted.tolist()


# --- Tensors without memory ------------------------------------------------------------------------------------------


class Recorder:
    """Operations that keep the arrays of their calls."""

    def __init__(self, *arguments):
        self.arrays = []

    def append(self, dtype):
        return self._record

    def attention(self, dtype, is_decode, **options):
        return self._record

    def _record(self, inputs, layer, *arrays, out=None, scale=None, sinks=None):
        placed = inputs.placed_offsets, inputs.lengths, inputs.lut, *inputs.blocks, *inputs.scales
        self.arrays += [array for array in (*placed, *arrays, out, sinks) if array is not None]


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(cache, "Kernels", Recorder)
    monkeypatch.setattr(Event, "has_ended", False)
    with fake_gpu(), torch.no_grad():
        yield


def make_moved(name):
    kind, options = MODELS[name]
    # PyTorch before 2.15 computes no sizes of products of groups in float32.
    model = transformers.AutoModelForCausalLM.from_config(kind(**SIZES | options), dtype=torch.bfloat16)
    move(model).eval().set_attn_implementation("kvcache")
    return model, PagedCache(model, max_batch_size=3, max_seq_len=64, page_size=4)


def ones(*shape):
    return torch.ones(shape, dtype=torch.long, device=DEVICE)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gemma3n", "gpt_oss", "deepseek_v3"])
def test_decode_step_on_a_gpu_reads_no_element(name, gpu):
    model, pages = make_moved(name)
    model(ones(2, 7), past_key_values=pages)
    for columns in (8, 9):
        out = model(ones(2, 1), attention_mask=ones(2, columns), past_key_values=pages)
        assert out.logits.device == DEVICE
    arrays = pages._kernels.arrays
    assert {array.device for array in arrays} == {DEVICE}
    assert pages.get_seq_length() == 9
    with pytest.raises(ValueError, match=r"expects an 'attention_mask' of \[2, 10\], got \[2, 9\]"):
        model(ones(2, 1), attention_mask=ones(2, 9), past_key_values=pages)


def test_prompt_with_a_mask_reads_its_elements(gpu):
    """The rule that the test above relies on: a read by the host raises."""
    model, pages = make_moved("llama")
    with pytest.raises(Exception, match="numpy|FakeTensor|data"):
        model(ones(2, 7), attention_mask=ones(2, 7), past_key_values=pages)


def test_cache_rejects_rows_of_other_devices(gpu):
    model, _ = make_moved("llama")
    pages = PagedCache(model.config, max_batch_size=3, max_seq_len=64)
    with pytest.raises(ValueError, match="expects keys on cpu, where .* got cuda:0: pass the model or 'device'"):
        model(ones(2, 7), past_key_values=pages)


@pytest.mark.parametrize("is_same", [True, False])
def test_late_check_of_a_mask_raises_when_the_gpu_has_ended(is_same, monkeypatch):
    monkeypatch.setattr(Event, "has_ended", False)
    mask = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]])
    checks = padding.LateChecks()
    with fake_streams():
        checks.begin(mask, torch.tensor([2, 1 if is_same else 0]))
    checks.end()  # it does not wait
    monkeypatch.setattr(Event, "has_ended", True)
    if is_same:
        checks.end()
    else:
        with pytest.raises(ValueError, match="a mask of an earlier step has other padding"):
            checks.end()
    checks.end()


# --- A GPU -----------------------------------------------------------------------------------------------------------


def move_to_gpu(name, dtype=torch.float32):
    inputs = make_prompts(name, 5, 19, 1)
    wanted = generate(make_model(name, "eager", dtype), inputs)
    model = make_model(name, dtype=dtype).to("cuda")
    return model, {key: value.to("cuda") for key, value in inputs.items()}, wanted


@needs_gpu
@pytest.mark.parametrize("name", MODELS)
def test_tokens_on_a_gpu(name):
    model, inputs, wanted = move_to_gpu(name)
    try:
        pages = PagedCache(model, max_batch_size=8, max_seq_len=256, page_size=16)
        assert generate(model, inputs, pages).tolist() == wanted.tolist()
        beams = {"num_beams": 3, "max_new_tokens": 8}
        pages.reset()
        found = generate(model, inputs, pages, **beams)
        eager = generate(make_model(name, "eager"), {k: v.cpu() for k, v in inputs.items()}, **beams)
        assert found.tolist() == eager.tolist()
    finally:
        model.to("cpu")


@needs_gpu
@pytest.mark.parametrize("name", NAMES)
def test_decode_step_does_not_wait_for_the_gpu(name):
    model, inputs, _ = move_to_gpu(name)
    try:
        pages = PagedCache(model, max_batch_size=8, max_seq_len=256, page_size=16)
        mask, next_ids = inputs["attention_mask"], ones(3, 1)
        with torch.no_grad():
            model(**inputs, past_key_values=pages)
            for step in range(3):
                mask = torch.cat([mask, ones(3, 1)], dim=1)
                if step:  # the first step compiles and loads kernels
                    torch.cuda.set_sync_debug_mode("error")
                model(next_ids, attention_mask=mask, past_key_values=pages)
                torch.cuda.set_sync_debug_mode("default")
            wrong = mask.clone()
            wrong[0, -2] = 0
            wrong = torch.cat([wrong, ones(3, 1)], dim=1)
            model(next_ids, attention_mask=wrong, past_key_values=pages)
            torch.cuda.synchronize()
            with pytest.raises(ValueError, match="a mask of an earlier step has other padding"):
                model(next_ids, attention_mask=torch.cat([wrong, ones(3, 1)], dim=1), past_key_values=pages)
    finally:
        torch.cuda.set_sync_debug_mode("default")
        model.to("cpu")


@needs_gpu
def test_uploads_do_not_wait_and_keep_their_numbers():
    from kvcache import ArrayMemory

    memory = ArrayMemory(torch, device="cuda")
    torch.cuda._sleep(20_000_000)
    tensors = []
    for number in range(50):
        array = np.full(4096, number, np.uint32)
        tensors.append(memory.upload(array))
        array[:] = 7
    assert all((tensor == number).all() for number, tensor in enumerate(tensors))
