"""SGLang in processes that fork from one that has imported it, on the CPU.

SGLang has a device "cpu" of its own. Its compiled operators are optional there, except
that some modules import their names: ``install_operators`` writes a module that has them.
"""

import functools
import gc
import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import forked

ENVIRONMENT = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1"}
os.environ |= ENVIRONMENT

_OPERATORS = '''"""Names of the operators of SGLang's build for CPUs, which none of the tests calls."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def call(*arguments, **options):
        raise NotImplementedError(f"sgl_kernel.{name} is not installed")

    return call
'''

_ENGINES = []
"""The engine of a process, which ends without closing it."""


def install_operators(folder):
    """Writes a module in place of SGLang's package of compiled operators."""
    Path(folder, "sgl_kernel.py").write_text(_OPERATORS)
    return str(folder)


_FOLDER = tempfile.TemporaryDirectory()
OPERATORS = install_operators(_FOLDER.name)
"""A folder of Python's path with the module."""

sys.path.append(OPERATORS)


@functools.cache
def _import_engine():
    """Imports what each case needs, in fifteen seconds."""
    import sglang.srt.entrypoints.engine  # noqa: F401
    import sglang.srt.managers.detokenizer_manager  # noqa: F401
    import sglang.srt.managers.scheduler  # noqa: F401
    import sglang.srt.models.registry  # noqa: F401

    import kvcache.sglang.backend  # noqa: F401

    gc.collect()
    gc.freeze()


def run_forked(function, *args, log, **options):
    """Calls a function in a process that has imported SGLang, as ``forked.run_forked``."""
    _import_engine()
    return forked.run_forked(function, *args, log=log, redirect=_fork_processes, **options)


def _fork_processes():
    """Lets SGLang fork its processes, which have imported it then."""
    import torch

    multiprocessing.set_start_method("fork", force=True)
    for module in (multiprocessing, torch.multiprocessing):
        module.set_start_method = lambda *arguments, **options: None
    torch._dynamo.config.disable = True  # compiles a function of Gemma in 20 s


def generate(model, prompts, max_tokens, target="cpu", kvcache=None, **options):
    """Generates tokens of prompts with SGLang, greedily.

    ``options`` are those of ``sglang.Engine``; ``kvcache`` has more options of the backend.
    """
    import sglang

    os.environ["KVCACHE_SGLANG"] = json.dumps({"target": target, **(kvcache or {})})
    engine = sglang.Engine(
        model_path=str(model),
        **{
            "attention_backend": "kvcache",
            "device": "cpu",
            "dtype": "float32",
            "log_level": "info",
            "skip_tokenizer_init": True,
            "disable_cuda_graph": True,
            "max_total_tokens": 2048,
            "max_running_requests": 4,
            "context_length": 256,
        }
        | options,
    )
    _ENGINES.append(engine)
    sampling = {"temperature": 0, "max_new_tokens": max_tokens, "ignore_eos": True}
    outputs = engine.generate(input_ids=prompts, sampling_params=sampling)
    tokens = [output["output_ids"] for output in outputs]
    engine.shutdown()
    return tokens
