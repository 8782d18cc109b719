"""vLLM in processes that fork from one that has imported it, on the CPU."""

import functools
import gc
import importlib
import logging
import os
import sys

import forked
from forked import PLUGINS  # noqa: F401

os.environ |= {
    "KVCACHE_VLLM_PLATFORM": "cpu",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}

_ENGINES = []
"""The engine of a process, which ends without closing it."""


@functools.cache
def _import_engine():
    """Imports what each case needs, in ten seconds. No tensor is computed before a fork."""
    import vllm.entrypoints.llm
    import vllm.v1.engine.llm_engine
    import vllm.v1.worker.utils  # noqa: F401

    import kvcache.vllm.selection
    import kvcache.vllm.testing.reference
    import kvcache.vllm.testing.worker  # noqa: F401

    for name in ("llama", "qwen3", "gemma2", "gemma3", "gemma3n", "deepseek_v2"):
        importlib.import_module(f"vllm.model_executor.models.{name}")
    gc.collect()
    gc.freeze()  # vLLM collects garbage repeatedly


def run_forked(function, *args, log, **options):
    """Calls a function in a process that has imported vLLM, as ``forked.run_forked``."""
    _import_engine()
    return forked.run_forked(function, *args, log=log, redirect=_redirect_logger, **options)


def _redirect_logger():
    logger = logging.getLogger("vllm")
    if not logger.handlers:  # vLLM adds one when it reads its configuration
        logger.addHandler(logging.StreamHandler())
    for handler in logger.handlers:
        handler.setStream(sys.stdout)  # it has pytest's


def generate(model, prompts, max_tokens, backend="CUSTOM", target="cpu", **options):
    """Generates tokens of prompts with vLLM, greedily.

    ``options`` are those of ``vllm.LLM``; ``kvcache`` has more options of the backend.
    """
    from vllm import LLM, SamplingParams

    engine = LLM(
        model=str(model),
        attention_backend=backend,
        additional_config={"kvcache": {"target": target, **options.pop("kvcache", {})}},
        **{
            "skip_tokenizer_init": True,
            "dtype": "float32",
            "enforce_eager": True,
            "max_model_len": 256,
            "max_num_seqs": 4,
            "block_size": 16,
            "kv_cache_memory_bytes": 1 << 22,
        }
        | options,
    )
    _ENGINES.append(engine)
    sampling = SamplingParams(temperature=0, max_tokens=max_tokens, detokenize=False, ignore_eos=True)
    inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
    outputs = engine.generate(inputs, sampling, use_tqdm=False)
    return [list(output.outputs[0].token_ids) for output in outputs]
