"""The command line of the machine with the GPU."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import report
from .cuda_device import CudaDevice
from .device import Device, DeviceError
from .inputs import Sizes
from .kernels import OURS, PackError, choose_chip, load
from .measure import ALL, DeviceLostError, Plan, Runner
from .works import WORKS


def parse_works(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in WORKS]:
        raise argparse.ArgumentTypeError(f"unknown work {unknown[0]!r}; known are {', '.join(WORKS)}")
    return names


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expects a positive number, got {text!r}")
    return int(text)


def _make_parser(description: str) -> argparse.ArgumentParser:
    sizes = Sizes()
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", type=parse_works, default=list(WORKS), metavar="LIST",
                        help=f"comma-separated (default: {','.join(WORKS)})")
    parser.add_argument("--batch", type=_positive, default=sizes.batch, help="sequences (default: %(default)s)")
    parser.add_argument("--context", type=_positive, metavar="N",
                        help="tokens of the longest sequence, a multiple of 64 (default: 4 times the L2 cache in all)")
    parser.add_argument("--layers", type=_positive, default=sizes.layers,
                        help="layers of the cache, of which the last is used (default: %(default)s)")
    parser.add_argument("--chunk", type=_positive, default=sizes.chunk,
                        help="tokens in a split of decode (default: %(default)s)")
    parser.add_argument("--repetitions", type=_positive, default=100, help="counted runs (default: %(default)s)")
    parser.add_argument("--warm-up", type=_positive, default=10, help="runs before them (default: %(default)s)")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="leave a contender out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to this file")
    return parser


def _version(package: str) -> str:
    try:
        module = importlib.import_module(package)
    except ImportError:
        return "not installed"
    return getattr(module, "__version__", "unknown")


def read_sensors(bus_id: str) -> dict[str, str]:
    """Clocks, temperature and power, where the package pynvml is there to read them."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        gpu = nvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
        return {
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
            "SM clock": f"{nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)} MHz",
            "memory clock": f"{nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)} MHz",
            "temperature": f"{nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)} C",
            "power": f"{nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3:.0f} W",
        }
    except Exception as error:  # optional: pynvml's own errors are of many kinds
        return {"sensors": f"not read: {error}"}


def _describe_run(device: Device, chip: str, arguments: Sequence[str]) -> dict[str, str]:
    facts = device.facts
    peak, source = report.peak_bandwidth(facts)
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "command": " ".join(arguments),
        "device": f"{facts.name}, {facts.multiprocessors} SMs, {facts.memory_bytes / 1e9:.0f} GB, "
                  f"L2 {facts.l2_bytes / 1e6:.0f} MB",
        "code for": chip,
        "CUDA driver": facts.driver,
        "peak": f"{peak / 1e12:.2f} TB/s ({source})",
        "host": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        **{name: _version(name) for name in ("numpy", "cuda.bindings", "triton", "flashinfer", "torch")},
    }


def _run_works(runner: Runner, works: list[str]) -> str | None:
    """Why the works could not all be run, if so."""
    for name in works:
        try:
            runner.run(WORKS[name])
        except DeviceLostError as error:
            return f"{error}; nothing after it was run (--without leaves a contender out)"
    return None


def main(folder: Path, description: str, arguments: Sequence[str] | None = None) -> int:
    """Runs the pack in ``folder``. Fails where ours is wrong or the device is lost, not where it is slow."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = _make_parser(description)
    options = parser.parse_args(arguments)
    try:
        sizes = Sizes(options.batch, options.context or Sizes().context, options.layers, options.layers - 1,
                      options.chunk)
    except ValueError as error:
        parser.error(str(error))
    try:
        pack = load(folder)
        device = CudaDevice()
        chip = choose_chip(device.facts.capability, pack.chips)
    except (DeviceError, PackError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    plan = Plan(sizes, options.context, options.repetitions, options.warm_up, tuple(options.without),
                folder / "peers/triton_kernels.py")
    provenance = {f"pack {key}": value for key, value in pack.provenance.items()}
    provenance |= _describe_run(device, chip, arguments)
    provenance |= {f"{key} before": value for key, value in read_sensors(device.facts.bus_id).items()}
    runner = Runner(device, pack, chip, plan)
    lost = _run_works(runner, options.works)
    provenance |= {f"{key} after": value for key, value in read_sensors(device.facts.bus_id).items()}
    return present(runner, provenance, lost, options.json)


def present(runner: Runner, provenance: dict[str, str], lost: str | None, path: Path | None) -> int:
    """Prints what was found, and gives the exit status."""
    facts, results = runner.device.facts, runner.results
    rows = report.make_rows(results, report.peak_bandwidth(facts)[0])
    verdict = report.judge(rows)
    width = max(map(len, provenance))
    print("\n".join(f"{key.ljust(width)}  {value}" for key, value in provenance.items()))
    print(f"\n{report.format_table(rows)}\n")
    print("\n".join([*verdict, *report.warn_of_cache(results, facts.l2_bytes)]))
    errors = [lost] if lost else []
    if path:
        try:
            path.write_text(json.dumps(report.to_json(provenance, results, rows, verdict), indent=1) + "\n")
        except OSError as error:
            errors.append(f"the results could not be written: {error}")
    for text in errors:
        print(f"error: {text}", file=sys.stderr)
    failed = any(row.status in ("wrong", "failed") and row.contender in (OURS, ALL) for row in rows)
    return 1 if errors or failed else 0
