"""Makes the reference of the Python package: a page for each task, and an index of them."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import kvcache

from page_examples import ROOT


@dataclass(frozen=True)
class Task:
    """The names of the package for one task, and their page.

    Attributes:
        page: The name of the page.
        title: Its title.
        names: Names of ``kvcache``; a module stands for all of its names.
        calls: Methods that are documented as well, by their paths in ``kvcache``.
        guide: A page that shows the task.
    """

    page: str
    title: str
    names: tuple[str, ...]
    guide: str = ""
    calls: tuple[str, ...] = ()


TASKS = (
    Task(
        "compile",
        "Compile and run",
        ("compile", "jit", "load", "chips", "CompiledModule", "JitModule", "Kernel", "Parameter", "Descriptor"),
        "ship-a-kernel.md",
    ),
    Task(
        "params",
        "Describe a cache",
        ("KVCacheParams", "KVCacheQuantizationConfig", "KVCacheStrategy", "MultiKVCacheParams", "reach"),
        "manage-pages.md",
    ),
    Task(
        "ops",
        "Call whole-cache operations",
        ("ops", "AttentionConfig", "StepInputs", "tune", "TuningResult"),
        "attention-over-my-cache.md",
        (
            "ops.attention_operation.Attention.__call__",
            "ops.append_operation.Append.__call__",
            *(f"ops.operations.{name}.__call__" for name in ("Gather", "CopyPages", "MergeStates")),
            "ops.index_scoring.IndexScores.__call__",
            "ops.pooling.Pool.__call__",
            "ops.selection.TopRows.__call__",
        ),
    ),
    Task("layouts", "Describe an engine's layout", ("Layout", "describe", "row_params"), "describe-my-engines-layout.md"),
    Task(
        "manager",
        "Manage pages",
        (
            "PagedKVCacheManager", "Retain", "Memory", "AsyncMemory", "NumPyMemory", "ArrayMemory", "CUDAMemory", "NoMemory", "Swap", "Prefetch",
            "CacheStats", "CacheSnapshot", "SequenceState", "PageState", "PageAddress", "Place", "pictures",
        ),
        "manage-pages.md",
    ),
    Task("transfer", "Send pages to another machine", ("transfer", "Lease", "Reception", "Region"), "transfer-pages.md"),
    Task("stores", "Keep pages beyond a process", ("stores",), "keep-pages-across-restarts.md"),
    Task("metrics", "Watch hit rates", ("metrics",), "watch-hit-rates.md"),
    Task("events", "Tell routers what is cached", ("events",), "route-by-prefix.md"),
    Task("frameworks", "Use PyTorch, transformers and JAX", ("torch", "transformers", "jax"), "use-with-pytorch-and-jax.md"),
    Task(
        "emulator",
        "Run kernels on the emulator",
        (
            "emulate", "EmulatedModule", "EmulatedKernel", "EmulatedParameter", "TensorMap", "LaunchMeter", "CopyMeter",
            "ProductMeter", "BarrierMeter",
        ),
        "find-a-race.md",
    ),
    Task("ir", "Build and read IR", ("ir",), "build-ir-in-python.md"),
    Task(
        "tma",
        "Compute descriptors and tiles",
        (
            "DescriptorFields", "descriptor_fields", "tile_offset", "swizzle_granularity", "padded_depth", "folded_chunks",
            "gather4_box_width", "scale_window",
        ),
        "write-tma-by-hand.md",
    ),
    Task(
        "errors",
        "Handle errors",
        (
            "Error", "CompileError", "CompileWarning", "Diagnostic", "CheckError", "TargetError", "ToolchainError",
            "ArtifactError", "TuningError", "OutOfPagesError",
        ),
    ),
)  # fmt: skip


def pages() -> dict[str, str]:
    """The index and the pages of the tasks, by their places in the site."""
    return {
        "reference/python/index.md": _index(),
        **{f"reference/python/{task.page}.md": _page(task) for task in TASKS},
    }


def _index() -> str:
    """Tabulates the names of each task, in the order in which programs use them."""
    parts = ["# Python API", "The names of the package by task. Names without a module are those of `kvcache`."]
    for task in TASKS:
        rows = [f"| [`{name}`]({task.page}.md#{path}) | {_summary(name, entry)} |" for name, path, entry in _entries(task)]
        parts += [f"## [{task.title}]({task.page}.md)", "\n".join(["| name | |", "| --- | --- |", *rows])]
    return "\n\n".join(parts) + "\n"


def _entries(task: Task) -> Iterator[tuple[str, str, Any]]:
    """The names of a task and of its modules, with their paths and objects."""
    for name in task.names:
        entry = find(name)
        yield name, f"kvcache.{name}", entry
        if isinstance(entry, ModuleType):
            for each in getattr(entry, "__all__", ()):
                found = getattr(entry, each)
                path = f"{entry.__name__}.{each}"
                # A module of the same name shadows a function for readers of the source.
                is_hidden = path in sys.modules and not isinstance(found, ModuleType)
                yield f"{name}.{each}", f"{found.__module__}.{each}" if is_hidden else path, found


def find(name: str) -> Any:
    """Finds the object of a name, or nothing where a framework is missing."""
    if name in kvcache.__all__:
        return getattr(kvcache, name)
    try:
        return importlib.import_module(f"kvcache.{name}")
    except ImportError:
        return None


def _summary(name: str, entry: Any) -> str:
    """Reads the first paragraph of a docstring, from the source of a module whose framework is missing."""
    text = entry.__doc__ if callable(entry) or isinstance(entry, ModuleType) else ""
    if entry is None:
        folder = ROOT / "python" / "kvcache"
        source = next(path for path in (folder / f"{name}.py", folder / name / "__init__.py") if path.exists())
        text = ast.get_docstring(ast.parse(source.read_text()))
    return " ".join((text or "").split("\n\n")[0].split()).replace("|", "\\|")


def _title(guide: str) -> str:
    """The heading of a how-to."""
    return (ROOT / "docs" / "how-to" / guide).read_text().splitlines()[0].removeprefix("# ")


def _page(task: Task) -> str:
    guide = f"\n[{_title(task.guide)}](../../how-to/{task.guide}) has the steps.\n" if task.guide else ""
    entries = [f"::: kvcache.{name}\n    options:\n      heading_level: 2\n" for name in task.names]
    options = "\n    options:\n      heading_level: 3\n      show_root_full_path: false\n"
    entries += [f"::: {path}{options}" for name, path, _ in _entries(task) if path != f"kvcache.{name}"]
    entries += [f"## Call {call.split('.')[-2]}\n\n::: kvcache.{call}{options}" for call in task.calls]
    return f"# {task.title}\n{guide}\n" + "\n".join(entries)
