# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that the emulator runs kernels of the installed Triton, without a GPU."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from foreign_kernels import CHECKS
from places import BUILD

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


BESIDE = """
{imports}
import numpy as np
from kernels.triton_kernels import compile_kernel

assert "ptx" in compile_kernel("append", 90).asm
x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
source = "func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {{ memref.copy %x, %y : memref<4xf32> to memref<4xf32> return }}"
kvcache.jit(source).call("f", x, y)
assert (x == y).all() and torch.equal(torch.from_numpy(x) * 2, torch.from_numpy(y + y))
assert "ptx" in compile_kernel("decode", 90).asm
assert "libMLIR" not in open("/proc/self/maps").read()
print(kvcache._kvcache.__file__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["torch, triton, kvcache", "kvcache, torch, triton"])
def test_llvm_of_the_small_extension_beside_those_of_torch_and_triton(first, tmp_path):
    """Each of the three has an LLVM of its own in the process, in any order, and compiles."""
    subprocess.run(["cmake", "--build", BUILD, "--target", "_kvcache-small"], check=True, capture_output=True)
    package = tmp_path / "kvcache"
    shutil.copytree(Path(kvcache.__file__).parent, package, symlinks=True)
    (extension,) = package.glob("_kvcache.*.so")
    shutil.copy(BUILD / "wheel-small" / extension.name, extension)
    support = Path(sys.modules["foreign_kernels"].__file__).parent
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{support}"}
    program = BESIDE.format(imports=f"import {first}")
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(extension)
