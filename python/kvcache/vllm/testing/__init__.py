# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's wheel for CUDA on a machine without a GPU, to test the backend.

With ``KVCACHE_VLLM_PLATFORM=cpu``, vLLM runs on the CPU: it loads ``find_platform`` as a
plugin for platforms. PyTorch replaces the operators that the wheel has only for CUDA.
"""

from __future__ import annotations

import os

__all__ = ["VARIABLE", "find_platform"]

VARIABLE = "KVCACHE_VLLM_PLATFORM"
"""The environment variable that selects the platform: ``cpu``, or unset."""


def find_platform() -> str | None:
    """Returns the class of the platform, or None unless ``VARIABLE`` selects it.

    Raises ``ValueError`` for another value than ``cpu``.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "cpu"):
        raise ValueError(f"expects {VARIABLE} to be 'cpu' or unset, got {value!r}")
    return f"{__name__}.platform.Platform" if value else None
