"""The stages of the suite, each a process with a limit of its own. Needs nothing but Python.

A stage gets its share of the minutes, and what earlier ones have left. Its process, with all that it has started, ends
at its limit. The record is written after each stage, so that a machine may stop at any time.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path

from measure import say
from record import Record
from report import Table

_COUNTS = re.compile(r"\b\d+ (?:passed|failed|skipped|errors?|deselected)\b")
_LAST_LINES = 30


@dataclass(frozen=True)
class Paths:
    """The folders of a pack, or of a repository with a build.

    Attributes:
        repo: The repository, or the part of it in the pack.
        packages: The folders of Python's path, first the one with ``kvcache``.
        results: Where stages write their results.
    """

    repo: Path
    packages: tuple[Path, ...]
    results: Path


@dataclass(frozen=True)
class Options:
    """The options of a run.

    Attributes:
        minutes: The time of all stages.
        target: The target of kernels: ``cuda``, or an emulated chip.
        small: Whether to run few cases with few tokens.
        jobs: The processes of tests.
    """

    minutes: float
    target: str
    small: bool
    jobs: int

    @property
    def is_on_gpu(self) -> bool:
        return self.target.startswith("cuda")


@dataclass(frozen=True)
class Stage:
    """A part of the suite.

    Attributes:
        name: The name in the record.
        share: The part of the minutes.
        needs: The modules without which it is absent.
        command: Makes the arguments of Python, from the paths, the options and the seconds.
    """

    name: str
    share: float
    needs: tuple[str, ...]
    command: Callable[[Paths, Options, float], Sequence[str]]


@dataclass
class Outcome:
    """The result of a stage.

    Attributes:
        status: ``passed``, ``failed``, ``out of time`` or ``absent``.
        note: The counts of tests, or the reason.
        output: The last lines of a stage that has not passed.
    """

    stage: str
    status: str
    seconds: float
    note: str
    output: str = ""


def _test(paths: Paths, options: Options, files: Sequence[str], *more: str) -> list[str]:
    """The arguments of a run of pytest."""
    parallel = ["-n", str(options.jobs)] if options.jobs > 1 and util.find_spec("xdist") else []
    where = ["--on-gpu"] if options.is_on_gpu else []
    few = ["--cases", "1"] if options.small else []
    known = [str(paths.repo / file) for file in files if (paths.repo / file).exists()]
    return ["-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestConfigWarning", *parallel, *where, *few, *more, *known]


_KERNELS = ("test_attention", "test_attention_tiles", "test_attention_splits", "test_attention_schedule")
_COPIES = ("test_data_copies", "test_data_copy_blocks", "test_data_tma", "test_data_pipes", "test_data_tiles")
_FRAMEWORKS = ("test_gpu", "test_flash_attention", "test_transformers_gpu", "test_jax")


def test_kernels(paths: Paths, options: Options, seconds: float) -> list[str]:
    """Attention and copies, on the GPU or emulated."""
    names = [*_KERNELS, *_COPIES]
    if options.small:
        names = [_KERNELS[1], _COPIES[0]]
    return _test(paths, options, [f"test/python/data/{name}.py" for name in names])


def test_vllm(paths: Paths, options: Options, seconds: float) -> list[str]:
    """vLLM's tokens, of its own attention and ours."""
    return _test(paths, options, [f"test/python/engines/{name}.py" for name in ("test_vllm", "test_vllm_steps")])


def test_frameworks(paths: Paths, options: Options, seconds: float) -> list[str]:
    """Tokens of transformers, and the functions for PyTorch and JAX."""
    names = [name for name in _FRAMEWORKS if name != "test_jax" or util.find_spec("jax")]
    if options.small:
        names = ["test_transformers_gpu"]
    # What needs no GPU has passed where the pack was made.
    chosen = ["-k", "gpu or cuda"] if options.is_on_gpu else ["-k", "llama"]
    return _test(paths, options, [f"test/python/extras/{name}.py" for name in names], *chosen)


def count_tokens(paths: Paths, options: Options, seconds: float) -> list[str]:
    """Tokens per second of transformers."""
    small = ["--small"] if options.small else []
    result = str(paths.results / "on-gpu-tokens.json")
    script = str(paths.repo / "benchmarks/gpu_suite/tokens.py")
    return [script, "--target", options.target, "--seconds", f"{seconds:.0f}", "--json", result, *small]


def count_served_tokens(paths: Paths, options: Options, seconds: float) -> list[str]:
    """Tokens per second of vLLM, with our attention and with its own."""
    small = ["--small"] if options.small else []
    result = str(paths.results / "on-gpu-served-tokens.json")
    script = str(paths.repo / "benchmarks/gpu_suite/served_tokens.py")
    return [script, "--target", options.target, "--seconds", f"{seconds:.0f}", "--json", result, *small]


def tune_attention(paths: Paths, options: Options, seconds: float) -> list[str]:
    """Configs of attention, and a file with the fastest."""
    small = ["--small"] if options.small else []
    result, file = (str(paths.results / name) for name in ("on-gpu-tuner.json", "on-gpu-tuning.json"))
    script = str(paths.repo / "benchmarks/gpu_suite/tuner.py")
    return [script, "--target", options.target, "--seconds", f"{seconds:.0f}", "--json", result, "--file", file, *small]


def time_operations(paths: Paths, options: Options, seconds: float) -> list[str]:
    """Operations beside their peers."""
    script = str(paths.repo / "benchmarks/gpu_ops.py")
    result = str(paths.results / "on-gpu-operations.json")
    small = ["--small", "--jobs", "1", "--only", "copy_pages|1 x 1K"] if options.small else []
    return [script, "--target", options.target, "--seconds", f"{seconds:.0f}", "--json", result, *small]


STAGES = (
    Stage("kernels", 0.25, ("pytest", "numpy"), test_kernels),
    Stage("vllm", 0.15, ("pytest", "torch", "vllm"), test_vllm),
    Stage("frameworks", 0.15, ("pytest", "torch", "transformers"), test_frameworks),
    Stage("tokens", 0.1, ("torch", "transformers"), count_tokens),
    Stage("served-tokens", 0.15, ("torch", "vllm"), count_served_tokens),
    Stage("tuner", 0.2, ("numpy",), tune_attention),
    Stage("operations", 0.2, ("torch", "numpy"), time_operations),
)


def run_stage(stage: Stage, paths: Paths, options: Options, seconds: float) -> Outcome:
    """Runs a stage for at most ``seconds``."""
    if missing := [name for name in stage.needs if not util.find_spec(name)]:
        return Outcome(stage.name, "absent", 0.0, f"needs {', '.join(missing)}")
    say(f"{stage.name}: at most {seconds:.0f} s")
    log = paths.results / f"on-gpu-{stage.name}.log"
    start = time.monotonic()
    # Benchmarks end before the limit.
    command = [sys.executable, *stage.command(paths, options, max(seconds - 5, 1))]
    with log.open("w") as file:
        process = subprocess.Popen(
            command, cwd=paths.repo, env=_make_environment(paths), stdout=file, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            has_ended = _wait(process, max(seconds, 1))
        finally:
            _end_group(process)
    status = ("failed" if process.returncode else "passed") if has_ended else "out of time"
    text = log.read_text(errors="replace")
    counts = ", ".join(_COUNTS.findall(text.rpartition("\n=")[2] or text)[-4:])
    lines = text.splitlines()[-_LAST_LINES:]
    output = "" if status == "passed" else "\n".join(lines)
    return Outcome(stage.name, status, round(time.monotonic() - start, 1), counts, output)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends within ``seconds``. It stays a zombie, so no other process gets its number."""
    end = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that nothing has waited for, and all that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _make_environment(paths: Paths) -> Mapping[str, str]:
    folders = [*map(str, paths.packages), str(paths.repo / "test/python/support"), str(paths.repo / "benchmarks")]
    path = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}


def run_all(paths: Paths, options: Options, only: Sequence[str], record: Record) -> list[Outcome]:
    """Runs the stages in their order, and writes the record after each."""
    outcomes: list[Outcome] = []
    end = time.monotonic() + 60 * options.minutes
    stages = [stage for stage in STAGES if not only or stage.name in only]
    for index, stage in enumerate(stages):
        left = sum(each.share for each in stages[index:])
        seconds = (end - time.monotonic()) * stage.share / left
        outcomes.append(run_stage(stage, paths, options, seconds))
        say(f"{stage.name}: {outcomes[-1].status} after {outcomes[-1].seconds} s, {outcomes[-1].note}")
        record.tables = {"stages": tabulate(outcomes)}
        record.details = {"outcomes": [asdict(outcome) for outcome in outcomes]}
        record.save(paths.results / "on-gpu.json")
    return outcomes


def tabulate(outcomes: Sequence[Outcome]) -> Table:
    table = Table("stage", "status", ("seconds", "{:.1f}"), "note")
    for outcome in outcomes:
        table.add(outcome.stage, outcome.status, outcome.seconds, outcome.note)
    return table
