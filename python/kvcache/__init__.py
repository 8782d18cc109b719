# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""KV-cache operations for MLIR: compile kernels for NVIDIA's chips, or run them here.

``compile`` compiles the GPU modules of a source to PTX or machine code. ``jit`` makes
its functions callable with NumPy arrays. ``emulate`` runs kernels of other compilers on
the emulator. ``load`` reads the artifacts of ``CompiledModule.save``. ``ir`` has the
types of the dialect.
"""

from . import ir, ops, pictures, transfer
from ._version import __version__
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
from .pages.snapshot import (
    CacheSnapshot,
    CacheStats,
    PageAddress,
    PageState,
    Place,
    SequenceState,
)
from .pages.swaps import Swap

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
    "ProductMeter",
    "Reception",
    "Region",
    "SequenceState",
    "StepInputs",
    "Swap",
    "TargetError",
    "TensorMap",
    "ToolchainError",
    "__version__",
    "chips",
    "compile",
    "describe",
    "descriptor_fields",
    "emulate",
    "folded_chunks",
    "gather4_box_width",
    "ir",
    "jit",
    "load",
    "ops",
    "padded_depth",
    "pictures",
    "reach",
    "scale_window",
    "swizzle_granularity",
    "tile_offset",
    "transfer",
]
