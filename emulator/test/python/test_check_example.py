# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""emulator/examples/check.py launches a kernel from a shell."""

import re
import shlex
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from places import ROOT

import kvcache

sys.path.insert(0, str(ROOT / "emulator/examples"))

import check

KERNELS = ROOT / "test/python/support/kernels"
needs_clang = pytest.mark.skipif(
    not (shutil.which("clang-22") or shutil.which("clang")), reason="clang compiles CUDA C++"
)
SHIFT = (ROOT / "emulator/examples/shift.cu", "shift_right", "random:float32[128]", "float32[128]", "--block=128")


def run(*arguments):
    command = [sys.executable, ROOT / "emulator/examples/check.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@needs_clang
def test_command_of_readme_prints_the_report():
    page = (ROOT / "emulator/README.md").read_text()
    (command, report) = re.search(r"^```sh\npython \S*check.py (.*?)^```\n\n```text\n(.*?)^```", page, re.M | re.S).groups()
    result = run(*shlex.split(command))
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.split() == report.split()


@needs_clang
def test_kernel_without_error_passes():
    result = run(*SHIFT)
    assert (result.returncode, result.stdout) == (0, "shift_right: no error\n"), result.stderr


def test_kernel_of_triton_is_launched_with_its_parameters():
    arrays = ("random:float16[2,16,32]", "random:float16[6,16,32]", "int32[2,3]", "int32[2]", "empty:float32[2,16,32]")
    options = ("--chip=sm_80", "--grid=2", "--shared-bytes=2560")
    result = run(KERNELS / "decode_sm80.llir", "decode", *arrays, "3", "0", "0", *options)
    assert result.stdout == "decode: no error\n", result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nothing.ll", "kernel"), "No such file or directory: 'nothing.ll'"),
        ((KERNELS / "cuda_kernels.ll", "nothing"), "there is no kernel 'nothing'"),
        ((KERNELS / "cuda_kernels.ll", "scratch_reuse", "words"), "could not convert string to float: 'words'"),
        ((KERNELS / "cuda_kernels.ll", "scratch_reuse", "1"), "expects 'block'"),
    ],
)
def test_wrong_arguments_are_errors(arguments, error):
    result = run(*arguments)
    assert result.returncode == 1
    assert result.stderr.startswith("error: ") and error in result.stderr


def test_arguments_become_numbers_and_arrays(tmp_path):
    module = kvcache.emulate(KERNELS / "cuda_kernels.ll", "sm_90a", opt_level=0)
    assert check.make_argument("-3", module) == -3
    assert check.make_argument("0x10", module) == 16
    assert check.make_argument("0.5", module) == 0.5
    zeros = check.make_argument("bfloat16[2,3]", module)
    assert zeros.shape == (2, 3) and zeros.dtype == ml_dtypes.bfloat16 and not zeros.any()
    assert check.make_argument("random:float32[100]", module).std() > 0.5
    assert check.make_argument("empty:int32[4]", module).dtype == np.int32
    np.save(tmp_path / "x.npy", np.arange(3))
    assert (check.make_argument(str(tmp_path / "x.npy"), module) == np.arange(3)).all()
