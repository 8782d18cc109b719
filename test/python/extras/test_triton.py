# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that the emulator runs kernels of the installed Triton, without a GPU."""

import pytest
from foreign_kernels import CHECKS

import kvcache

pytest.importorskip("triton")

from kernels.triton_kernels import compile_kernel  # noqa: E402, as it needs Triton


@pytest.mark.parametrize("capability", [80, 90, 100])
@pytest.mark.parametrize("name", CHECKS)
def test_kernel(name, capability):
    if capability < 89 and name == "append":
        pytest.skip("fp8 needs sm_89")
    compiled = compile_kernel(name, capability)
    target = {80: "sm_80", 90: "sm_90a", 100: "sm_100a"}[capability]
    module = kvcache.emulate(
        compiled.asm["llir"], target, opt_level=0, assume_fences=capability == 100
    )
    assert module.kernel(name).block_size == (128, 1, 1)
    CHECKS[name](module, compiled.metadata.shared)
