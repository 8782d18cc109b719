"""The command line of the machine with the GPU."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from command import Command, parse_names
from measure import Result
from provenance import list_versions, read_gpu
from record import Record

from . import report
from .cuda_device import CudaDevice, DeviceError
from .inputs import Sizes
from .kernels import OURS, PackError, choose_chip, load
from .measure import ALL, DeviceLostError, Plan, Runner
from .works import WORKS


def add_works(command: Command) -> None:
    command.add("--works", type=parse_names(list(WORKS)), default=list(WORKS), metavar="LIST",
                help=f"comma-separated (default: {','.join(WORKS)})")


def _make_command(description: str) -> Command:
    sizes, command = Sizes(), Command("run.py", description)
    add_works(command)
    command.add_count("--batch", sizes.batch, "sequences")
    command.add_count("--context", None, "tokens of the longest sequence, a multiple of 64 (default: 4 times the L2 cache)")
    command.add_count("--layers", sizes.layers, "layers of the cache, of which the last is used")
    command.add_count("--chunk", sizes.chunk, "tokens in a split of decode")
    command.add_count("--repetitions", 100, "counted runs")
    command.add_count("--warm-up", 10, "runs before them")
    command.add("--without", action="append", default=[], metavar="NAME", help="leave a contender out")
    return command


def _run_works(runner: Runner, works: list[str]) -> str | None:
    """Runs the works; returns the reason where nothing more can be run."""
    for name in works:
        try:
            runner.run(WORKS[name])
        except DeviceLostError as error:
            return f"{error}; nothing after it was run (--without leaves a contender out)"
    return None


def main(folder: Path, description: str, arguments: Sequence[str] | None = None) -> int:
    """Runs the pack in ``folder``. Fails where ours is wrong or the device is lost, not where it is slow."""
    command = _make_command(description)
    options = command.parse(arguments)
    context = options.context or Sizes().context
    try:
        sizes = Sizes(options.batch, context, options.layers, options.layers - 1, options.chunk)
    except ValueError as error:
        command.parser.error(str(error))
    try:
        pack = load(folder)
        device = CudaDevice()
        chip = choose_chip(device.facts.capability, pack.chips)
    except (DeviceError, PackError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    plan = Plan(sizes, options.context, options.repetitions, options.warm_up, tuple(options.without),
                folder / "peers/triton_kernels.py")
    runner = Runner(device, pack, chip, plan)
    before = read_gpu(device.facts.bus_id)
    lost = _run_works(runner, options.works)
    record = _describe_run(runner, before, sys.argv[1:] if arguments is None else arguments)
    return present(record, runner, lost, options.json, options.markdown)


def _describe_run(runner: Runner, before: dict[str, str], arguments: Sequence[str]) -> Record:
    facts, pack = runner.device.facts, runner.pack.provenance
    peak, source = report.find_peak(facts)
    memory = f"{facts.memory_bytes / 1e9:.0f} GB, L2 {facts.l2_bytes / 1e6:.0f} MB"
    packages = "numpy", "cuda-bindings", "triton", "flashinfer-python", "torch"
    software = {"CUDA": facts.driver, **list_versions(*packages)}
    software |= {name: pack[name] for name in ("kvcache", "ptxas", "nvcc") if name in pack}
    details = {
        "code for": runner.chip,
        "peak": f"{peak / 1e12:.2f} TB/s ({source})",
        "host": f"{platform.system()} {platform.machine()}",
        **{f"pack {key}": value for key, value in pack.items()},
        **{f"{key} before": value for key, value in before.items()},
        **{f"{key} after": value for key, value in read_gpu(facts.bus_id).items()},
    }
    return Record(
        "python kvcache-bench-gpu/run.py",
        device=f"{facts.name}, {facts.multiprocessors} SMs, {memory}",
        driver=before.get("driver"),
        software=software,
        runs=f"{runner.plan.repetitions} launches in turns, after {runner.plan.warm_up}",
        details=details,
        arguments=arguments,
        commit=pack.get("commit", "unknown"),
    )


def present(record: Record, runner: Runner, lost: str | None, path: Path | None, markdown: bool) -> int:
    """Prints what was found, and gives the exit status."""
    facts, results = runner.device.facts, runner.results
    report.rate(results, report.find_peak(facts)[0])
    verdict, notes = report.judge(results), report.list_notes(results)
    record.tables = {"full": report.tabulate_full(results), "all": report.tabulate(results)}
    described = "".join(f"{name}: {value}\n" for name, value in record.details.items())
    print(f"{record.render_provenance(markdown)}\n{described}\n{record.tables['all'].render(markdown)}\n")
    print("\n".join([*notes, "", *verdict, *report.warn_of_cache(results, facts.l2_bytes)]))
    record.details |= {"verdict": verdict, "results": results}
    errors = [lost] if lost else []
    if path:
        try:
            record.save(path)
        except OSError as error:
            errors.append(f"the results could not be written: {error}")
    for text in errors:
        print(f"error: {text}", file=sys.stderr)
    return 1 if errors or any(map(_is_failure, results)) else 0


def _is_failure(result: Result) -> bool:
    return result.status in ("wrong", "failed") and result.contender in (OURS, ALL)
