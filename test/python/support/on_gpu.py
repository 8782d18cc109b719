"""The option ``--on-gpu`` of pytest: programs for emulated chips run on this machine's GPU.

Code for older chips runs too, since the driver compiles their PTX. Tests that need the emulator's
checks, its meter or other chips are skipped. An error of a kernel ends the process, because nothing
can be launched after it; pytest-xdist starts another one. Failures are written to
``$KVCACHE_GPU_ERRORS`` at once, or to the standard error.
"""

import os
import sys
import threading

import pytest

import kvcache
from kvcache.devices import cuda

TIME_LIMIT = 30


def install(config):
    """Lets ``kvcache.jit`` compile for the GPU."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures())
    capability = _find_capability()
    compile, expect = kvcache.jit, pytest.raises

    def jit(source, target="cpu", filename=None, **options):
        device, _, chip = target.partition(":")
        if device != "emulator":
            return compile(source, target, filename, **options)
        if not _runs(chip, capability):
            pytest.skip(f"a GPU of compute capability {capability} does not run code for {chip}")
        for name in ("meter", "bounds_checks"):
            if options.get(name):
                pytest.skip(f"{name}: an error ends the context, and nothing is counted")
        options.pop("sanitize", None)
        options.pop("meter", None)
        return Program(compile(source, f"cuda:{chip}", filename, **options))

    def raises(expected, *arguments, **options):
        if expected is kvcache.CheckError:
            pytest.skip("only the emulator finds the error")
        return expect(expected, *arguments, **options)

    kvcache.jit = jit
    pytest.raises = raises


def _find_capability():
    try:
        chips = cuda.find_chips()
    except kvcache.TargetError as error:
        raise pytest.UsageError(f"--on-gpu: {error}") from None
    return int(chips[0].removeprefix("sm_").rstrip("af"))


def _runs(chip, capability):
    """CUDA C++ Programming Guide, "PTX Compatibility"."""
    number = int(chip.removeprefix("sm_").rstrip("af"))
    return number == capability if chip.endswith("a") else number <= capability


class Program:
    """A program whose functions take arrays of the host."""

    def __init__(self, program):
        self._program = program

    def __getattr__(self, name):
        if name in ("function", "launches"):
            pytest.skip(f"{name} of a program for the emulator")
        return getattr(self._program, name)

    def call(self, name, *arguments):
        timer = threading.Timer(TIME_LIMIT, _end, [f"@{name} takes longer than {TIME_LIMIT} s"])
        timer.start()
        try:
            return self._program.call(name, *arguments, copy_host_arrays=True)
        except kvcache.CheckError as error:
            if "CUDA_ERROR" in str(error):
                _end(f"@{name}: {error}")
            raise
        finally:
            timer.cancel()


class Failures:
    """Reports each failure at once, because the run may be stopped before its end."""

    def pytest_runtest_logreport(self, report):
        if report.failed:
            _write(f"{report.nodeid}: {report.when}\n{report.longreprtext}")


def _end(message):
    _write(f"{os.environ.get('PYTEST_CURRENT_TEST', '?')}: {message}")
    sys.stderr.flush()
    os._exit(1)


def _write(message):
    with open(os.environ.get("KVCACHE_GPU_ERRORS", "/dev/stderr"), "a") as file:
        print(message, file=file, flush=True)
