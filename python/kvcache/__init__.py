# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The KV cache of language models: its pages, operations on it, and a compiler.

``KVCacheParams`` describes a cache, ``PagedKVCacheManager`` allocates its pages, and
``ops`` has the operations on arrays. For kernels of your own, ``jit`` compiles MLIR and
calls its functions, ``compile`` makes PTX or machine code, and ``load`` reads what
``CompiledModule.save`` has written. ``emulate`` runs kernels of other compilers on the
emulator, and ``ir`` has the types of the dialect.

Examples:
    >>> import numpy as np
    >>> import kvcache
    >>> params = kvcache.KVCacheParams(
    ...     "f32", n_kv_heads=2, head_dim=64, page_size=16, total_num_layers=1
    ... )
    >>> cache = kvcache.PagedKVCacheManager(
    ...     params, max_batch_size=4, max_seq_len=256, num_pages=32
    ... )
    >>> found = cache.claim("request", range(20))
    >>> inputs = cache.inputs(["request"])
    >>> keys, values = np.ones((2, 20, 2, 64), np.float32)
    >>> kvcache.ops.append(params)(inputs, 0, keys, values)
    >>> q = np.ones((20, 8, 64), np.float32)
    >>> out = np.empty_like(q)
    >>> kvcache.ops.attention(params, query_heads=8)(inputs, 0, q, out=out, scale=1 / 8)
    >>> cache.step(["request"])
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from . import events, ir, metrics, ops, pictures, stores, transfer
    from .cache import reach
    from .cache.geometry import (
        DescriptorFields,
        descriptor_fields,
        folded_chunks,
        gather4_box_width,
        padded_depth,
        scale_window,
        swizzle_granularity,
        tile_offset,
    )
    from .cache.groups import MultiKVCacheParams
    from .cache.layouts import Layout, describe
    from .cache.params import KVCacheParams
    from .cache.quantization import KVCacheQuantizationConfig
    from .cache.row_params import row_params
    from .cache.strategy import KVCacheStrategy
    from .compilation.compiler import chips, compile
    from .compilation.descriptors import Descriptor
    from .compilation.kernels import Kernel, Parameter
    from .compilation.modules import CompiledModule, load
    from .devices.emulated import TensorMap
    from .devices.emulator import BarrierMeter, CopyMeter, LaunchMeter, ProductMeter
    from .errors import (
        ArtifactError,
        CheckError,
        CompileError,
        CompileWarning,
        Diagnostic,
        Error,
        OutOfPagesError,
        TargetError,
        ToolchainError,
        TuningError,
    )
    from .execution.emulation import (
        EmulatedKernel,
        EmulatedModule,
        EmulatedParameter,
        emulate,
    )
    from .execution.runtime import JitModule, jit
    from .ops.attention_config import AttentionConfig
    from .pages.cuda_memory import CUDAMemory
    from .pages.inputs import StepInputs
    from .pages.leases import Lease, Reception
    from .pages.manager import PagedKVCacheManager
    from .pages.memory import ArrayMemory, AsyncMemory, Memory, NoMemory, NumPyMemory
    from .pages.regions import Region
    from .pages.retention import Retain
    from .pages.snapshot import (
        CacheSnapshot,
        CacheStats,
        PageAddress,
        PageState,
        Place,
        SequenceState,
    )
    from .pages.prefetch import Prefetch
    from .pages.swaps import Swap
    from .tuning.tuner import TuningResult, tune

_SUBMODULES = (
    *("bytecode", "cache", "checks", "compilation", "devices", "dtypes", "errors"),
    *("events", "execution", "ir", "metrics", "ops", "pages", "pictures", "stores", "transfer"),
    "tuning",
)
_NAMES = {
    ".cache.geometry": (
        "DescriptorFields",
        "descriptor_fields",
        "folded_chunks",
        "gather4_box_width",
        "padded_depth",
        "scale_window",
        "swizzle_granularity",
        "tile_offset",
    ),
    ".cache.groups": ("MultiKVCacheParams",),
    ".cache.layouts": (
        "Layout",
        "describe",
    ),
    ".cache.params": ("KVCacheParams",),
    ".cache.quantization": ("KVCacheQuantizationConfig",),
    ".cache.row_params": ("row_params",),
    ".cache.strategy": ("KVCacheStrategy",),
    ".compilation.compiler": (
        "chips",
        "compile",
    ),
    ".compilation.descriptors": ("Descriptor",),
    ".compilation.kernels": (
        "Kernel",
        "Parameter",
    ),
    ".compilation.modules": (
        "CompiledModule",
        "load",
    ),
    ".devices.emulated": ("TensorMap",),
    ".devices.emulator": (
        "BarrierMeter",
        "CopyMeter",
        "LaunchMeter",
        "ProductMeter",
    ),
    ".errors": (
        "ArtifactError",
        "CheckError",
        "CompileError",
        "CompileWarning",
        "Diagnostic",
        "Error",
        "OutOfPagesError",
        "TargetError",
        "ToolchainError",
        "TuningError",
    ),
    ".execution.emulation": (
        "EmulatedKernel",
        "EmulatedModule",
        "EmulatedParameter",
        "emulate",
    ),
    ".execution.runtime": (
        "JitModule",
        "jit",
    ),
    ".ops.attention_config": ("AttentionConfig",),
    ".pages.cuda_memory": ("CUDAMemory",),
    ".pages.inputs": ("StepInputs",),
    ".pages.leases": (
        "Lease",
        "Reception",
    ),
    ".pages.manager": ("PagedKVCacheManager",),
    ".pages.memory": (
        "ArrayMemory",
        "AsyncMemory",
        "Memory",
        "NoMemory",
        "NumPyMemory",
    ),
    ".pages.regions": ("Region",),
    ".pages.retention": ("Retain",),
    ".pages.snapshot": (
        "CacheSnapshot",
        "CacheStats",
        "PageAddress",
        "PageState",
        "Place",
        "SequenceState",
    ),
    ".pages.prefetch": ("Prefetch",),
    ".pages.swaps": ("Swap",),
    ".tuning.tuner": ("TuningResult", "tune"),
}
"""The public names by their modules, which are imported when they are first used."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    if name == "reach":
        return importlib.import_module(".cache.reach", __name__)
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_MODULES[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "ArrayMemory",
    "AsyncMemory",
    "ArtifactError",
    "AttentionConfig",
    "BarrierMeter",
    "CUDAMemory",
    "CacheSnapshot",
    "CacheStats",
    "CheckError",
    "CompileError",
    "CompileWarning",
    "CompiledModule",
    "CopyMeter",
    "Descriptor",
    "DescriptorFields",
    "Diagnostic",
    "EmulatedKernel",
    "EmulatedModule",
    "EmulatedParameter",
    "Error",
    "JitModule",
    "KVCacheParams",
    "KVCacheQuantizationConfig",
    "KVCacheStrategy",
    "Kernel",
    "Layout",
    "LaunchMeter",
    "Lease",
    "Memory",
    "MultiKVCacheParams",
    "NoMemory",
    "NumPyMemory",
    "OutOfPagesError",
    "PageAddress",
    "PageState",
    "PagedKVCacheManager",
    "Parameter",
    "Place",
    "Prefetch",
    "ProductMeter",
    "Reception",
    "Region",
    "Retain",
    "SequenceState",
    "StepInputs",
    "Swap",
    "TargetError",
    "TensorMap",
    "ToolchainError",
    "TuningError",
    "TuningResult",
    "__version__",
    "chips",
    "compile",
    "describe",
    "descriptor_fields",
    "emulate",
    "events",
    "folded_chunks",
    "gather4_box_width",
    "ir",
    "jit",
    "load",
    "metrics",
    "ops",
    "padded_depth",
    "pictures",
    "reach",
    "row_params",
    "scale_window",
    "stores",
    "swizzle_granularity",
    "tile_offset",
    "transfer",
    "tune",
]
