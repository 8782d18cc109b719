"""Tests that processes that used the package end silently, with any objects alive."""

import os
import subprocess
import sys

import pytest

GLOBALS = """
import kvcache
from kvcache import _kvcache

_kvcache.set_leak_warnings({warnings})
SOURCE = "func.func @f(%x: i1) {{ cf.assert %x, \\"no\\" return }}"
KERNEL = "gpu.module @m {{ gpu.func @k() kernel {{ gpu.return }} }}"
program = kvcache.jit(SOURCE, opt_level=0)
emulated = kvcache.jit(SOURCE, "emulator:sm_90a", opt_level=0)
compiled = kvcache.compile(KERNEL)
module = kvcache.ir.Module.parse(SOURCE)
a_type = kvcache.ir.Type.parse("!kvcache.row_indices<rows = 16, page_size = 16>")
params = kvcache.KVCacheParams(
    dtype="bf16", n_kv_heads=1, head_dim=8, page_size=4, total_num_layers=1
)
manager = kvcache.PagedKVCacheManager(
    params, max_batch_size=1, max_seq_len=16, num_pages=4
)
errors = []
for call in (lambda: program.call("f", False), lambda: kvcache.compile("no")):
    try:
        call()
    except kvcache.Error as error:
        errors.append(error)
cycle = [program, emulated, module]
cycle.append(cycle)
"""

THREADS = """
import sys, threading, time
def use():
    held = program, module
    started.set()
    while True:
        {work}
started = threading.Event()
threading.Thread(target=use, daemon=True).start()
started.wait()
time.sleep(0.1)
"""

WORK = {
    "waits": "time.sleep(100)",
    "compiles": "kvcache.compile(KERNEL)",
    "parses": "kvcache.ir.Module.parse(SOURCE)",
    "calls": "program.call('f', True)",
    "calls the emulator": "emulated.call('f', True)",
}


def run(script):
    """Runs a script, which must succeed; returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_nothing_leaks():
    assert run(GLOBALS.format(warnings=True)) == ""


def test_leaks_would_be_found():
    leak = "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(module._module))"
    assert "leaked 1 instances" in run(GLOBALS.format(warnings=True) + leak)


@pytest.mark.parametrize("work", WORK)
def test_daemon_threads_do_not_disturb_process_end(work):
    script = GLOBALS.format(warnings=False) + THREADS.format(work=WORK[work])
    assert run(script) == ""
