"""vLLM in processes that fork from one that has imported it, on the CPU."""

import functools
import gc
import importlib
import logging
import multiprocessing
import os
import sys
import tempfile
import tomllib
import traceback
from pathlib import Path

from places import ROOT

os.environ |= {
    "KVCACHE_VLLM_PLATFORM": "cpu",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}

TIMEOUT = 120
"""Seconds of a case, which takes two to five."""

_ENGINES = []
"""The engine of a process, which ends without closing it."""


def install_plugins(folder):
    """Writes the metadata of an installed package with the project's entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = Path(folder, "kvcache-0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kvcache\nVersion: 0\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return str(folder)


_PLUGINS = tempfile.TemporaryDirectory()
PLUGINS = install_plugins(_PLUGINS.name)
"""A folder of Python's path with the entry points."""

sys.path.append(PLUGINS)


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
    """Calls a function in a process of its own, with its output in a file.

    Returns the result. Raises ``AssertionError`` with the child's traceback.
    """
    _import_engine()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(sender, log, function, args, options))
    child.start()
    sender.close()
    try:
        if not receiver.poll(TIMEOUT):
            raise AssertionError(f"no result in {TIMEOUT} s: see {log}")
        failed, result = receiver.recv()
    except EOFError:
        child.join()
        raise AssertionError(f"the process ended with {child.exitcode}: see {log}") from None
    finally:
        child.kill()
        child.join()
    assert not failed, f"{result}\nsee {log}"
    return result


def _redirect_output(log):
    sys.stdout = sys.stderr = open(log, "w", buffering=1)
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stdout.fileno(), 2)
    logger = logging.getLogger("vllm")
    if not logger.handlers:  # vLLM adds one when it reads its configuration
        logger.addHandler(logging.StreamHandler())
    for handler in logger.handlers:
        handler.setStream(sys.stdout)  # it has pytest's


def _run(sender, log, function, args, options):
    _redirect_output(log)
    try:
        import torch

        torch.set_num_threads(1)
        sender.send((False, function(*args, **options)))
    except BaseException:
        sender.send((True, traceback.format_exc()))
    finally:
        sender.close()
        os._exit(0)


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
