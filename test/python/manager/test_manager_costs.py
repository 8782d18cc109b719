"""Tests of the cost of a page manager's calls, in function calls, which are equal on any machine."""

import kvcache
import numpy as np
import pytest
from function_calls import count_calls
from kvcache import reach
from kvcache.pages.prefixes import Prefix
from kvcache.pages.tokens import count_common

KINDS = {
    "one group": [reach.full],
    "three groups": [reach.full, reach.window(32, sinks=4), reach.chunk(64)],
}
PAGE = 4


def make(kinds, max_seq_len=4096):
    groups = [
        kvcache.KVCacheParams(
            "bf16", 1, 8, page_size=PAGE, enable_prefix_caching=True, layer_ids=[i], reach=kind
        )
        for i, kind in enumerate(kinds)
    ]
    params = groups[0] if len(groups) == 1 else kvcache.MultiKVCacheParams(groups)
    return kvcache.PagedKVCacheManager(
        params,
        max_batch_size=4096,
        max_seq_len=max_seq_len,
        num_pages=100_000,
        memory=kvcache.NoMemory(),
    )


def decode(cache, names):
    cache.grow_batch(names, np.arange(len(names)))
    cache.inputs(names)
    cache.step(names)


@pytest.fixture(params=KINDS)
def kinds(request):
    return KINDS[request.param]


@pytest.mark.parametrize("common", [0, 16], ids=["apart", "after a system prompt"])
def test_a_claim_does_not_look_at_each_prompt_in_the_cache(kinds, common):
    def claim_among(prompts):
        cache, system = make(kinds), list(range(common))
        for i in range(prompts):
            cache.claim("r", [*system, 2 * i, 2, 3, 4, 5])
            cache.step(["r"])
            cache.release("r")
        return count_calls(cache.claim, "new", [*system, prompts | 1, 2, 3, 4, 5])

    assert claim_among(1000) <= claim_among(10) + 10


def step(kinds, batch, context, max_seq_len=4096):
    """Counts the calls of a decode step in which no page becomes full."""
    cache = make(kinds, max_seq_len)
    names = [str(i) for i in range(batch)]
    for i, name in enumerate(names):
        cache.claim(name, 10_000 * i + np.arange(context))
    cache.step(names)
    decode(cache, names)
    return count_calls(decode, cache, names)


def test_a_step_does_not_look_at_all_tokens(kinds):
    assert step(kinds, 8, 2000) <= step(kinds, 8, 200) + 10
    assert step(kinds, 8, 200, 131_072) == step(kinds, 8, 200)


def test_a_step_is_linear_in_its_sequences(kinds):
    few, more, many = (step(kinds, batch, 40) for batch in (32, 64, 128))
    assert many - more <= 2 * (more - few) + 10


def test_step_allocates_for_its_longest_sequence(kinds):
    cache = make(kinds, 131_072)
    cache.claim("r", np.arange(40))
    for group in cache.inputs(["r"]).groups:
        assert group.lut.shape[1] <= 40


def test_a_manager_that_compares_all_prompts_is_found(monkeypatch):
    def find_among_all(self, tokens):
        keys = [child.tokens for child in self.list_children()]
        common, key = max(((count_common(key, tokens), key) for key in keys), default=(0, None))
        return (self.find_child(key).page, common) if common else (None, 0)

    monkeypatch.setattr(Prefix, "find_similar", find_among_all)
    with pytest.raises(AssertionError):
        test_a_claim_does_not_look_at_each_prompt_in_the_cache([reach.full], 16)
