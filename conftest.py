"""The common setup of tests: modules of benchmarks and docs/site, and a pack of kernels."""

import functools
import gc
import importlib.util
import itertools
import os
import random
import re
import sys
from pathlib import Path

import pytest

import kvcache

# scripts/check --extras runs these, with the frameworks and with vLLM.
NEEDS = {"torch": "test/python/extras", "vllm": "test/python/engines"}
collect_ignore = [folder for name, folder in NEEDS.items() if not importlib.util.find_spec(name)]

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
    parser.addoption(
        "--cases",
        type=int,
        metavar="N",
        help="run at most N cases of each test, always the same ones, and all files that tests of style read",
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
def driver():
    """The stand-in driver of CUDA, with a current context."""
    import standin
    from cuda.bindings import driver as bindings

    fake = standin.get()
    fake.reset()
    standin.succeed(bindings.cuInit(0))
    context = standin.succeed(bindings.cuDevicePrimaryCtxRetain(0))
    standin.succeed(bindings.cuCtxSetCurrent(context))
    yield fake
    fake.reset()


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


# Tests of the words and links of each file.
STYLE = re.compile(r"/test_(language|pages)\.py::")


def name_test(item):
    return item.nodeid.partition("[")[0]


def list_values(item):
    """The parameters of a case, by the parts of its name."""
    return set(enumerate(item.nodeid.partition("[")[2].removesuffix("]").split("-")))


def draw_cases(items, count):
    """Draws at most ``count`` cases of each test, except where a case is the style of a file.

    Each case is one with the most values of parameters that the ones before don't have."""
    chosen = []
    for name, cases in itertools.groupby(items, name_test):
        cases = list(cases)
        if STYLE.search(name) or len(cases) <= count:
            chosen += cases
            continue
        left, seen = random.Random(name).sample(cases, len(cases)), set()
        for _ in range(count):
            best = max(left, key=lambda case: len(list_values(case) - seen))
            left.remove(best)
            seen |= list_values(best)
            chosen.append(best)
    return chosen


@pytest.hookimpl(trylast=True)  # After marks deselect.
def pytest_collection_modifyitems(config, items):
    """Draws cases, and sorts slow tests first, so that no process waits for the last of another."""
    if count := config.getoption("--cases"):
        chosen = draw_cases(items, count)
        left_out = set(items) - set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = chosen
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
