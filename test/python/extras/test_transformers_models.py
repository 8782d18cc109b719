"""Tests of each class of models that a page lists: equal tokens with a PagedCache and without."""

import functools
import re

import pytest
import transformers
from places import ROOT
from random_models import MODELS, SIZES, check, make_model, prompts

from kvcache.transformers.layers import count_pages

PAGE = ROOT / "docs/reference/transformers-models.md"
NAMES = re.findall(r"\b\w+(?:ForCausalLM|LMHeadModel)\b", PAGE.read_text())


@functools.cache
def find_configs():
    """The configurations of each class of models, by its name."""
    configs = {}
    for config in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
        model = transformers.MODEL_FOR_CAUSAL_LM_MAPPING[config]
        for each in model if isinstance(model, tuple) else (model,):
            configs.setdefault(each.__name__, []).append(config)
    return configs


def find_fields(config):
    """The fields that a configuration adds to the common ones."""
    own = config.__mro__[: config.__mro__.index(transformers.PreTrainedConfig)]
    return {name for each in own for name in vars(each).get("__annotations__", {})}


def make_config(config, **options):
    """A configuration of a small model."""
    fields = find_fields(config)
    sizes = {name: size for name, size in SIZES.items() if name != "num_key_value_heads" or name in fields}
    return config(**sizes, **({"head_dim": 16} if "head_dim" in fields else {}), **options)


def test_page_has_each_class_once():
    assert len(set(NAMES)) == len(NAMES) and f"These {len(NAMES)} classes" in PAGE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_models_of_the_page_generate_equal_tokens(name, monkeypatch):
    configs = find_configs()
    if name not in configs:
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    known = {kind: (kind, options) for kind, options in MODELS.values()}
    # A class of several configurations is listed for its own, whose name is similar.
    own = min(configs[name], key=lambda each: len(set(name) ^ set(each.__name__)))
    config = next((each for each in configs[name] if each in known), own)
    kind, options = known.get(config, (functools.partial(make_config, config), {}))
    sizes = {} if config not in known else SIZES
    monkeypatch.setitem(MODELS, name, (lambda **_: kind(**sizes | options), {}))
    try:
        cache = check(name, prompts(5, 19))
    finally:
        make_model.cache_clear()
    used = cache.manager.num_pages - cache.manager.num_free_pages
    assert used == sum(count_pages(cache.manager.params, tokens) for tokens in (20, 34))
