"""Tests that the package imports a module when a name of it is first used."""

import json
import subprocess
import sys

import pytest

import kvcache

FIRST_CALL = """
import ml_dtypes, numpy as np
params = kvcache.KVCacheParams("bf16", 2, 32, page_size=4, total_num_layers=1)
blocks, new = np.zeros((2, 2, 1, 4, 2, 32), ml_dtypes.bfloat16), np.ones((1, 2, 32), ml_dtypes.bfloat16)
kvcache.ops.append(params, slots="i32")(kvcache.StepInputs.of(blocks=blocks), 0, new, new, slots=np.zeros(1, np.int32))
assert blocks[0, :, 0, 0].all()
"""


def list_imports(code):
    """The modules that a process has after ``import kvcache`` and some code."""
    text = f"import kvcache, json, sys\n{code}\nprint(json.dumps(list(sys.modules)))"
    return set(json.loads(subprocess.check_output([sys.executable, "-c", text])))


def test_import_alone_loads_no_other_package():
    loaded = list_imports("")
    assert {name for name in loaded if name.startswith("kvcache.")} == {"kvcache._version"}
    assert not loaded & {"numpy", "ml_dtypes", "tvm_ffi"}


def test_calls_on_the_cpu_need_neither_tvm_ffi_nor_the_manager():
    loaded = list_imports(FIRST_CALL)
    assert not loaded & {"tvm_ffi", "kvcache.ir", "kvcache.pages.manager", "kvcache.ops.tracing", "kvcache.pictures"}
    assert not loaded & {"kvcache.devices.emulator", "numpy.ma", "tempfile"}  # each takes milliseconds


def test_each_public_name_is_found_alone():
    assert sorted(kvcache.__all__) == dir(kvcache)
    listed = {*kvcache._MODULES, *kvcache._SUBMODULES, "__version__", "reach"}
    assert listed >= set(kvcache.__all__)
    for name in ("reach", "errors", "pictures", "KVCacheParams", "jit"):
        list_imports(f"assert kvcache.{name}")
    with pytest.raises(AttributeError, match="module 'kvcache' has no attribute 'nothing'"):
        kvcache.nothing
