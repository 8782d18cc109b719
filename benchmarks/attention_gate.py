#!/usr/bin/env python3
"""Compares the kernels of kvcache.attention with a baseline: no row of the tables may get worse on any chip.

Equal PTX is the same kernel. Other PTX is assembled: it may have no more instructions, registers, spilled bytes or
kernels than the baseline, no smaller MMAs, and no less overlap. It may have no advisory of ptxas: these say that MMAs
wait more than the PTX asks. The overlap is the number of exponentials that a warp computes while an MMA of its
warpgroup is in flight: those between WARPGROUP.DEPBAR gsb0,1, or the last HGMMA of an MMA (gsb0), and the next DEPBAR
or HGMMA. Nothing runs on a GPU.

A change that is meant, such as another tile, replaces rows of the baseline: ``--update WORD`` for rows with this word.

examples:
  scripts/gate-attention
  scripts/gate-attention --only "tensor-cores" --chips sm_90a
  scripts/gate-attention --update "heads of 128"
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from command import HINT

try:
    import attention_kernels
    import facts
    import kvcache
    from kvcache.compilation import sass, toolchain
except ImportError as error:
    sys.exit(f"error: {error}\n  {HINT}")

BASELINE = Path(__file__).parent / "baselines/attention.json"
CHIPS = "sm_80", "sm_90a", "sm_100a", "sm_120a"
TABLES = {
    "cuda-cores": attention_kernels.VARIANTS,
    "tensor-cores": attention_kernels.TILED,
    "few-rows": attention_kernels.FEW_ROWS,
    "eight-bits": attention_kernels.NARROW,
    "clusters": attention_kernels.CLUSTERED,
}
COUNTS = "kernels", "instructions", "registers", "spill_bytes"  # no more than in the baseline
Row = dict[str, Any]


def list_variants() -> dict[str, attention_kernels.Variant]:
    """Returns each row of the tables, by table, number and title."""
    return {
        f"{table} {number}: {variant.title}": variant
        for table, variants in TABLES.items()
        for number, variant in enumerate(variants, 1)
    }


def compile_kernels(variant: attention_kernels.Variant, chip: str) -> list[Any]:
    return list(variant.make("cpu").compile(chip).kernels.values())


def hash_ptx(kernels: list[Any]) -> str:
    return hashlib.sha256("".join(kernel.ptx for kernel in kernels).encode()).hexdigest()[:16]


def assemble(kernels: list[Any], chip: str) -> Row:
    """Measures the first kernel of a row. The second one merges splits, and only its PTX is compared."""
    assembly = toolchain.assemble(kernels[0].ptx, chip)
    (resources,) = assembly.resources.values()
    (listing,) = toolchain.disassemble(assembly.cubin).values()
    shapes = {tuple(map(int, shape)) for shape in re.findall(r"HGMMA\.(\d+)x(\d+)x", listing)}
    return {
        "ptx": hash_ptx(kernels),
        "kernels": len(kernels),
        "instructions": sass.read(listing).instructions,
        "registers": resources.registers,
        "spill_bytes": resources.spill_bytes,
        "smallest_mma": list(min(shapes)) if shapes else None,
        "overlap": sass.count_overlap(listing),
        **({"advisories": assembly.advisories} if assembly.advisories else {}),
    }


def compare(row: Row, baseline: Row | None) -> list[str]:
    """Lists what is worse than in the baseline."""
    if baseline is None:
        return ["is not in the baseline"]
    worse = [
        f"{name.replace('_', ' ')} {baseline[name]} -> {row[name]}"
        for name in COUNTS
        if row[name] > baseline[name]
    ]
    if baseline["smallest_mma"] and (row["smallest_mma"] or [0]) < baseline["smallest_mma"]:
        worse.append(f"smallest MMA {baseline['smallest_mma']} -> {row['smallest_mma']}")
    if row["overlap"] < baseline["overlap"]:
        worse.append(f"overlap {baseline['overlap']} -> {row['overlap']} exponentials")
    if advisories := row.get("advisories"):
        worse.append(f"advisories {', '.join(advisories)}")
    return worse


def write(tools: dict[str, str], rows: dict[str, Row]) -> None:
    """Writes the baseline with a line for each row."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items()))
    BASELINE.write_text(f'{{"tools": {json.dumps(tools)}, "rows": {{\n{lines}\n}}}}\n')


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/gate-attention", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chips", default=",".join(CHIPS), help="chips, with commas (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="WORD", help="only rows with this word")
    parser.add_argument("--update", metavar="WORD", help="replace rows with this word in the baseline; '' for all")
    return parser.parse_args()


def main() -> int:
    options = parse()
    chips = options.chips.split(",")
    if unknown := set(chips) - set(kvcache.chips()):
        sys.exit(f"error: unknown chip {unknown.pop()!r}")
    stored = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"tools": {}, "rows": {}}
    tools, rows = facts.find_tools(), stored["rows"]
    jobs = [
        (f"{name}, {chip}", variant, chip)
        for name, variant in list_variants().items()
        for chip in chips
        if options.only in name and variant.fits(chip)
    ]
    if not jobs:
        sys.exit(f"error: no row has the word {options.only!r}")
    is_partial = options.update or options.only or set(chips) != set(CHIPS)
    if options.update is not None and is_partial and rows and stored["tools"] != tools:
        sys.exit("error: rows of the baseline are of other tools: replace all of them by --update ''")

    def gate(job: tuple[str, attention_kernels.Variant, str]) -> tuple[str, Row]:
        name, variant, chip = job
        kernels = compile_kernels(variant, chip)
        known = rows.get(name)
        is_same = known is not None and known["ptx"] == hash_ptx(kernels) and stored["tools"] == tools
        return name, known if is_same else assemble(kernels, chip)

    changed = worse = 0
    with ThreadPoolExecutor(2) as pool:
        for number, (name, row) in enumerate(pool.map(gate, jobs), 1):
            if sys.stderr.isatty():
                print(f"\r{number} of {len(jobs)} kernels", end="", file=sys.stderr)
            known = rows.get(name)
            if row == known:
                continue
            changed += 1
            reasons = compare(row, known)
            if options.update is not None and options.update in name:
                rows[name] = row
                reasons = []
            worse += bool(reasons)
            print(f"{'worse' if reasons else 'other'}: {name}{': ' if reasons else ''}{', '.join(reasons)}")
    if options.update is not None:
        write(tools, rows)
    print(f"{len(jobs)} kernels: {len(jobs) - changed} as in the baseline, {changed - worse} changed, {worse} worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
