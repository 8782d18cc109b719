"""Tests of functions of scores and masks against PyTorch's FlexAttention, which takes the same."""

import numpy as np
import pytest
import torch
from attention_checks import CHIPS, LAYER, ROUNDING, close, dense, fill, make_params
from score_functions import alibi, capped, causal, dilated, documents_causal, global_window, prefix_lm
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import kvcache

QUERY_HEADS, TOKENS = 8, 96
RNG = np.random.default_rng(5)
ARRAYS = {
    "slopes": 2.0 ** -np.arange(1, QUERY_HEADS + 1, dtype=np.float32),
    "bias": RNG.normal(size=(QUERY_HEADS, 32)).astype(np.float32),
    "prefixes": np.array([20], np.int32),
    "documents": np.sort(RNG.integers(0, 5, (1, TOKENS)), axis=1).astype(np.int32),
}


def relative(s, sequence, head, query, key, bias):
    return s + bias[head, abs(query - key) % 32]


def capped_tensor(s, sequence, head, query, key):
    return 20 * torch.tanh(s / 20)


# Functions of a score and a mask; a third one where tensors have other operations than arrays.
CASES = {
    "alibi": (alibi, causal),
    "relative": (relative, prefix_lm),
    "cap": (capped, dilated, capped_tensor),
    "documents": (None, documents_causal),
    "window": (alibi, global_window),
}


def bind_arrays(function):
    """The function of FlexAttention, which has its arrays from outside."""
    if function is None:
        return None
    first = 4 + (function.__code__.co_varnames[0] == "s")
    names = function.__code__.co_varnames[first : function.__code__.co_argcount]
    tensors = [torch.from_numpy(ARRAYS[name]) for name in names]
    # It counts parameters.
    if first == 5:
        return lambda s, b, h, q, k: function(s, b, h, q, k, *tensors)
    return lambda b, h, q, k: function(b, h, q, k, *tensors)


def name_arrays(*functions):
    names = {name for each in functions if each for name in each.__code__.co_varnames[: each.__code__.co_argcount]}
    return {name: array for name, array in ARRAYS.items() if name in names}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("target", ["cpu", *CHIPS])
@pytest.mark.parametrize("case", CASES)
def test_functions_agree_with_flex_attention(case, target):
    score, mask, *others = CASES[case]
    params = make_params("bf16")
    manager, inputs = fill(params, "bf16", [40], [TOKENS - 40])
    keys, values = dense(params, inputs, TOKENS)[:, 0]
    q = RNG.standard_normal((TOKENS - 40, QUERY_HEADS, 64)).astype(kvcache.dtypes.dtype("bf16"))
    out = np.zeros_like(q)
    arrays = name_arrays(score, mask)
    types = {name: f"{array.dtype}[{', '.join(map(str, array.shape))}]" for name, array in arrays.items()}
    attend = kvcache.ops.attention(
        params, QUERY_HEADS, causal=False, dtype="bf16", target=target, score=score, mask=mask, arrays=types
    )
    attend(inputs, LAYER, q, out=out, scale=0.125, **arrays)

    # FlexAttention has a query for each token; the cached ones' are zeros.
    queries = np.concatenate([np.zeros((40, QUERY_HEADS, 64)), q.astype(np.float64)])
    q4, k4, v4 = (torch.from_numpy(each.swapaxes(0, 1)[None].copy()) for each in (queries, keys, values))
    blocks = create_block_mask(bind_arrays(mask), None, None, TOKENS, TOKENS, device="cpu")
    wanted = flex_attention(
        q4, k4, v4, bind_arrays(*others or [score]), block_mask=blocks, scale=0.125, enable_gqa=True
    )
    assert close(out, wanted[0].swapaxes(0, 1)[40:].numpy(), ROUNDING["bf16"] * np.abs(values).max())
