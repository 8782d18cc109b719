"""vLLM's Python files with the packages that generation without a network needs, for a pack.

The machine has PyTorch, Triton, transformers and NumPy, with the packages that these need.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from provenance import FOLDER

REQUIREMENTS = "test/python/engines/requirements.txt"
"""The list with the versions of all."""

# The wheels by the names of their modules, such as sys.modules has them after a generation.
PACKAGES = {
    "vllm": "vllm", "PIL": "pillow", "annotated_types": "annotated-types", "anyio": "anyio",
    "cachetools": "cachetools", "cbor2": "cbor2", "certifi": "certifi", "charset_normalizer": "charset-normalizer",
    "cloudpickle": "cloudpickle", "einops": "einops", "h11": "h11", "httpcore2": "httpcore2",
    "httpx2": "httpx2", "idna": "idna", "msgspec": "msgspec", "openai": "openai", "psutil": "psutil",
    "pybase64": "pybase64", "pydantic": "pydantic", "pydantic_core": "pydantic-core", "requests": "requests",
    "sniffio": "sniffio", "truststore": "truststore", "typing_inspection": "typing-inspection", "urllib3": "urllib3",
    "xgrammar": "xgrammar",
}  # fmt: skip

# Modules that vLLM imports and does not use in a generation, with their submodules, and why.
ABSENT = {
    "aiohttp": ("client",),  # files from the network
    "compressed_tensors": ("quantization",),  # quantized weights
    "cpuinfo": (),  # statistics of use
    "fastapi": ("responses",),  # the server
    "llguidance": (),  # guided decoding
    "openai_harmony": (),  # the format of answers of gpt-oss
    "partial_json_parser": ("core", "core.options"),  # calls of tools
    "prometheus_client": ("samples",),  # metrics of the server
    "tiktoken": (),  # tokenizers: prompts are tokens
    "uvloop": (),  # the server
    "zmq": ("asyncio",),  # engines in other processes
}
_STUB = "from gpu_suite.absent import make_getattr\n\n__getattr__ = make_getattr(__name__)\n"


def is_needed(module: str, name: str) -> bool:
    """Whether a file of a wheel is in the pack: all except vLLM's compiled operators, headers and tables."""
    return module != "vllm" or name.endswith((".py", "/METADATA", "/entry_points.txt"))


def add_stubs(folder: Path) -> None:
    """Writes modules in place of absent packages, and operators of PyTorch in place of compiled ones."""
    for module, submodules in ABSENT.items():
        for name in (module, *(f"{module}.{each}" for each in submodules)):
            package = folder / module / name.replace(".", "/")
            package.mkdir(parents=True)
            (package / "__init__.py").write_text(_STUB)
    shutil.copy(FOLDER / "gpu_suite/operators.py", folder / "vllm/vllm/_C_stable_libtorch.py")
