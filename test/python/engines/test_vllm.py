"""Tests of the backend in vLLM's engine: tokens equal to those of transformers."""

import os

import pytest
from engine_models import MAX_TOKENS, MODELS, get_model, make_prompts
from engines import generate, run_forked

TARGETS = ["cpu", "emulator:sm_90a", "emulator:sm_100a"]


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def run(root, tmp_path):
    """Generates tokens in a process of its own."""

    def run(model, variables=(), **options):
        log = tmp_path / "engine.log"
        tokens = run_forked(_generate, model, dict(variables), options, log=log)
        if options.get("backend", "CUSTOM") == "CUSTOM":
            assert "kvcache runs attention on" in log.read_text()
        return tokens

    return run


def _generate(model, variables, options):
    os.environ |= variables
    return generate(model, make_prompts(), MAX_TOKENS, **options)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_model_generates_tokens_of_transformers(run, root, name, target):
    model, expected = get_model(name, root)
    assert run(model, target=target) == expected
