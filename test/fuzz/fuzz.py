"""The driver of scripts/fuzz: runs fuzzers, reduces and counts what they find."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
FOLDER = BUILD / "fuzz"
TOTALS = FOLDER / "totals.json"
FINDINGS = FOLDER / "findings"
MUTATE = BUILD / "test" / "fuzz" / "kvcache-mutate"
KNOWN = ROOT / "test" / "fuzz" / "known.txt"


class Totals:
    """What has been run in this build folder, by fuzzer."""

    def __init__(self):
        self.read()

    def read(self):
        self.data = json.loads(TOTALS.read_text()) if TOTALS.exists() else {}

    def next_seed(self, fuzzer):
        return self.data.get(fuzzer, {}).get("next_seed", 1)

    def add(self, fuzzer, first, next_seed, count, seconds, findings):
        # Another run may have written in the meantime.
        self.read()
        entry = self.data.setdefault(fuzzer, {"count": 0, "seconds": 0, "findings": 0, "runs": []})
        entry["next_seed"] = next_seed
        entry["count"] += count
        entry["seconds"] = round(entry["seconds"] + seconds, 1)
        entry["findings"] += findings
        entry["runs"].append([first, next_seed, count, round(seconds, 1), findings])
        TOTALS.parent.mkdir(parents=True, exist_ok=True)
        TOTALS.write_text(json.dumps(self.data, indent=1) + "\n")


class Show:
    """Lines of progress: the rate, the count and the findings."""

    def __init__(self, fuzzer, seed):
        self.fuzzer, self.start, self.shown = fuzzer, time.monotonic(), 0.0
        print(f"{fuzzer}: from seed {seed}", flush=True)

    @property
    def seconds(self):
        return time.monotonic() - self.start

    def progress(self, count, findings, force=False):
        if not force and self.seconds - self.shown < 10:
            return
        self.shown = self.seconds
        rate = count / max(self.seconds, 0.001)
        print(f"{self.fuzzer}: {count} in {self.seconds:.0f} s, {rate:.1f}/s, {findings} findings", flush=True)


def read_known():
    """Parts of errors that are not findings."""
    lines = KNOWN.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


# Generated programs


def save_program(seed, variant, program, error):
    """A file that says how to run it again, once for each kind of error."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    path = FINDINGS / f"generate-{seed}-{program or 'module'}.json"
    record = {"seed": seed, "variant": variant, "program": program, "error": error}
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{path}: {variant}: {error.strip().splitlines()[-1][:200]}", flush=True)


def generate(seed, seconds, totals):
    """Programs in processes that begin anew after each crash, and after some modules."""
    show, first, count, kinds = Show("generate", seed), seed, 0, Counter()
    known = read_known()
    while show.seconds < seconds:
        left = seconds - show.seconds
        worker = subprocess.Popen(
            [sys.executable, ROOT / "test" / "fuzz" / "run_programs.py", str(seed), "25", str(left)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running = None
        for line in worker.stdout:
            said = json.loads(line)
            if "begins" in said:
                running = said["begins"]
            elif "ends" in said:
                seed, running = said["ends"] + 1, None
                count += said["programs"]
                show.progress(count, sum(kinds.values()))
            elif not any(part in said["error"] for part in known):
                kind = re.sub(r"\d+", "", f"{said['variant'].split()[0]} {said['error']}")[:120]
                kinds[kind] += 1
                if kinds[kind] <= 2:
                    save_program(said["seed"], said["variant"], said["program"], said["error"])
        status = worker.wait()
        if status != 0 or running is not None:
            kinds[f"status {status}"] += 1
            save_program(seed, "?", None, f"the process ends with {status}: {worker.stderr.read()[-500:]}")
            seed += 1
    findings = sum(kinds.values())
    show.progress(count, findings, force=True)
    totals.add("generate", first, seed, count, show.seconds, findings)
    return count, findings


# Mutants


def write_splits(folder, count):
    """Writes attention with drawn options at the level of splits: ``partial``, and its ``merge_splits``."""
    import draw_options

    draw_options.only_sources()
    files, seed = [], 0
    while len(files) < count:
        seed += 1
        source, chip, _ = draw_options.draw_program(seed) or ("", "", False)
        if "workspace" not in source:
            continue
        passes = [f"--kvcache-plan-attention=chip={chip}", "--kvcache-split-attention"]
        result = subprocess.run([BUILD / "bin" / "kvcache-opt", "-", *passes], input=source, capture_output=True, text=True)
        if "merge_splits" in result.stdout:
            files.append(folder / f"{seed}-splits.mlir")
            files[-1].write_text(result.stdout)
    return files


def corpus():
    """All MLIR of the repository, and some generated modules."""
    sys.path[:0] = [str(ROOT / folder) for folder in ("test/python/support", "test/fuzz", "emulator/test")]
    import add_launches
    import devices
    from generate import generate as generate_module

    found = [p for folder in ("test", "emulator/test", "examples") for p in sorted((ROOT / folder).rglob("*.mlir"))]
    folder = FOLDER / "corpus"
    folder.mkdir(parents=True, exist_ok=True)
    files = write_splits(folder, 60)
    for path in found:
        if "%add_launches" in path.read_text():
            complete = folder / path.name
            complete.write_text(add_launches.complete(path))
            files.append(complete)
        else:
            files.append(path)
    for seed in range(200):
        text = generate_module(seed, 1).source.text
        for name, contents in (("host", text), ("device", devices.on_device(text))):
            path = folder / f"{seed}-{name}.mlir"
            path.write_text(contents)
            files.append(path)
    return files


def mutate(seed, seconds, totals, fuzzer="mutate"):
    show, folder = Show(fuzzer, seed), FINDINGS / fuzzer
    command = [MUTATE, f"--seed={seed}", f"--seconds={seconds:.0f}", f"--output={folder}"]
    command += [f"--known={KNOWN}"]
    command += ["--bytecode"] if fuzzer == "bytecode" else []
    result = subprocess.run([*command, *corpus()], stdout=subprocess.PIPE, text=True)
    if result.returncode not in (0, 1):
        print(f"kvcache-mutate ends with {result.returncode}")
        return 0, 1
    said = json.loads(result.stdout.splitlines()[-1])
    print(f"{fuzzer}: {said}")
    for path in sorted(folder.glob(f"{seed}-*.mlir")):
        reduce_mutant(path)
    show.progress(said["mutants"], said["findings"], force=True)
    totals.add(fuzzer, seed, seed + 1, said["mutants"], show.seconds, said["findings"])
    return said["mutants"], said["findings"]


def damage_bytecode(seed, seconds, totals):
    return mutate(seed, seconds, totals, "bytecode")


def reduce_mutant(path):
    """Makes a finding smaller, where it is a module that parses."""
    reduced = path.with_suffix(".reduced.mlir")
    lines = path.read_text().splitlines()
    passes = next((line[11:] for line in lines if line.startswith("// passes: ")), "")
    if reduced.exists() or not passes:
        return
    script = FOLDER / "still-fails.sh"
    reason = lines[0][3:]
    if not reason.startswith("signal"):
        return
    script.write_text(
        "#!/bin/sh\n"
        f"timeout 20 {BUILD}/bin/kvcache-opt \"$1\" --pass-pipeline='builtin.module({passes})' "
        ">/dev/null 2>&1\n[ $? -ge 128 ]\n"
    )
    script.chmod(0o755)
    try:
        subprocess.run(
            [
                BUILD / "bin" / "kvcache-reduce",
                path,
                f"--reduction-tree=traversal-mode=0 test={script}",
                "-o",
                reduced,
            ],
            capture_output=True,
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        reduced.unlink(missing_ok=True)


# libFuzzer


def run_inputs(seed, seconds, totals):
    """Each program of test/fuzz/inputs, for its part of the time."""
    show, count, findings = Show("inputs", seed), 0, 0
    # MLIR's libraries would come before the runtime.
    find_runtime = ["clang-22", "-print-file-name=libclang_rt.asan-x86_64.so"]
    runtime = subprocess.check_output(find_runtime, text=True).strip()
    environment = {**os.environ, "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    FINDINGS.mkdir(parents=True, exist_ok=True)
    for name in INPUTS:
        corpus_folder = FOLDER / "inputs" / name
        corpus_folder.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(
            [
                ROOT / "build-fuzz" / "test" / "fuzz" / f"kvcache-fuzz-{name}",
                f"-seed={seed}",
                f"-max_total_time={max(1, seconds // len(INPUTS)):.0f}",
                f"-artifact_prefix={FINDINGS}/{name}-{seed}-",
                "-print_final_stats=1",
                "-timeout=10",
                "-verbosity=0",
                corpus_folder,
            ],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        done = re.search(r"number_of_executed_units: (\d+)", result.stderr)
        count += int(done[1]) if done else 0
        if result.returncode:
            findings += 1
            print(f"kvcache-fuzz-{name}: {result.stderr[-2000:]}")
    show.progress(count, findings, force=True)
    totals.add("inputs", seed, seed + 1, count, show.seconds, findings)
    return count, findings


# Options


def draw_options(seed, seconds, totals):
    """Compiles operations with drawn options, each a seed, until the time is up."""
    show, first, count, compiled, findings = Show("options", seed), seed, 0, 0, 0
    while show.seconds < seconds:
        command = [sys.executable, ROOT / "test" / "fuzz" / "draw_options.py", str(seed), str(10**6)]
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
            outcome = None
            for line in process.stdout:
                number, _, outcome = line.rstrip("\n").partition(" ")
                seed, count, compiled = int(number) + 1, count + 1, compiled + (outcome == "compiled")
                if outcome not in ("compiled", "refused"):
                    break
                show.progress(count, findings)
                if show.seconds >= seconds:
                    break
            is_over = outcome in ("compiled", "refused")
            if is_over or outcome:
                process.terminate()
            status = process.wait()
            log.seek(0)
            errors = log.read()[-2000:]
        if outcome is None:
            raise SystemExit(f"options: draw_options.py ended by status {status} before its first seed:\n{errors}")
        if not is_over:
            findings += 1
            FINDINGS.mkdir(parents=True, exist_ok=True)
            text = outcome or f"ended by status {status}"
            (FINDINGS / f"options-{seed - 1}.txt").write_text(f"{text}\n{errors}")
            print(f"options: seed {seed - 1}: {text}", flush=True)
    print(f"options: {compiled} of {count} operations compiled; the others were refused by a rule")
    show.progress(count, findings, force=True)
    totals.add("options", first, seed, count, show.seconds, findings)
    return count, findings


INPUTS = ("parser", "bytecode", "capi")
FUZZERS = {
    "generate": generate,
    "mutate": mutate,
    "bytecode": damage_bytecode,
    "inputs": run_inputs,
    "options": draw_options,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--only", action="append", choices=[*FUZZERS])
    arguments = parser.parse_args()
    fuzzers = arguments.only or [name for name in FUZZERS if name not in ("inputs", "options")]
    seconds = 60 * arguments.minutes / len(fuzzers)
    totals, count, findings = Totals(), 0, 0
    for fuzzer in fuzzers:
        seed = totals.next_seed(fuzzer) if arguments.seed is None else arguments.seed
        done = FUZZERS[fuzzer](seed, seconds, totals)
        count, findings = count + done[0], findings + done[1]
    print(f"{count} programs or inputs, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
