"""The common setup of tests: modules of benchmarks and docs/site, and a pack of kernels."""

import functools
import gc
import importlib.util
import os
import sys
from pathlib import Path

import pytest

import kvcache

# scripts/check --extras runs these, with the frameworks.
collect_ignore = [] if importlib.util.find_spec("torch") else ["test/python/extras"]

# Tests compile everything anew; test_store.py uses other folders.
os.environ["KVCACHE_CACHE"] = "off"

# Tests leave little garbage, and the collector would scan all objects repeatedly: 5 % of their time.
gc.set_threshold(100_000, 20, 20)

ROOT = Path(__file__).resolve().parent
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs" / "site")]


def pytest_addoption(parser):
    parser.addoption(
        "--on-gpu",
        action="store_true",
        help="run on the GPU of this machine what tests compile for emulated chips",
    )


def pytest_configure(config):
    if config.getoption("--on-gpu"):
        import on_gpu

        on_gpu.install(config)


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """A pack of our kernels for one chip."""
    from bench_gpu import CHIP
    from gpu import pack
    from gpu.works import WORKS

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "find_nvcc", lambda: None)
        return pack.fill(tmp_path_factory.mktemp("pack"), list(WORKS), [CHIP])


@pytest.fixture
def old_objects_stay():
    """Limits ``gc.collect()`` to the objects of the test, instead of a million others."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def unoptimized_operations():
    """Compiles operations without optimization, as in ``devices.jit``.

    It takes twice as long as the rest, and the tested passes precede it."""
    from kvcache.ops import operations

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "jit", functools.partial(kvcache.jit, opt_level=0))
        yield


@pytest.fixture
def optimized_operations(monkeypatch):
    """Compiles operations with optimization, as for users: LLVM uses MLIR's facts of aliases and overflows."""
    from kvcache.ops import operations

    monkeypatch.setattr(operations, "jit", kvcache.jit)


def pytest_collection_modifyitems(items):
    """Sorts slow tests first, so that no process waits for the last of another."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
