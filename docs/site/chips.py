"""A page per chip of what each op becomes, made by compiling the ops' examples."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import kvcache
from kvcache import _native

from page_examples import run_opt
from dialect_reference import Family, Op, families

_ALIAS = re.compile(r"^!(\w+) = (.*)$", re.MULTILINE)
_SIGNATURE = re.compile(
    r"^func\.func @(\w+)\(([^{]*?)\)\s*(?:->[^{]*?)?\{\n", re.MULTILINE
)
_RETURN = re.compile(
    r"^  return(?: ([^:]*?) : (.*?))?\n(?=\})", re.MULTILINE | re.DOTALL
)
_FRAGMENT = re.compile(r"!kvcache\.fragment<(?:\d+x)+(\w+),")
_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)", re.MULTILINE)
# What writes the message of a check that fails, once in a module.
_RECORDER = re.compile(r"^\.func kvcache_\w+\([^;{]*\)\s*\{.*?^\}", re.MULTILINE | re.DOTALL)
_FLOATS = r"\.(?:[bt]?f\d|e\dm\d|ue8m0)"
# Copies, accesses, barriers and conversions; not arguments, the stack, and arithmetic.
_OF_INTEREST = re.compile(
    r"(?:ld|st|red|atom)\.(?!param|local)|cp\.|prefetch|mbarrier\.|fence|bar\."
    r"|barrier\.|shfl\.|redux\.|elect\.|ldmatrix|mma\.|createpolicy|trap"
    rf"|cvt\S*{_FLOATS}"
)
_CALL = re.compile(r"\bcall(?:\.uni)?\s+(?:\([^)]*\),\s*)?(?!\w*use_\d)(\w+)")
_HOST_CALL = re.compile(r"llvm\.call @(kvcache(?!GetLastError|DeviceFailed)\w+)")


@dataclass(frozen=True)
class ChipClass:
    """Chips that can do the same, so that lowering makes the same for them."""

    chips: tuple[str, ...]
    features: frozenset[str]

    @property
    def title(self) -> str:
        """The names, those of an a- and f-variant together."""
        text = ", ".join(self.chips)
        return re.sub(r"\b(sm_\d+)a, \1f\b", r"\1a/f", text)

    @property
    def page(self) -> str:
        return f"chips/{self.chips[0]}.md"


def classes() -> list[ChipClass]:
    """All chips by what they can do, oldest first."""
    by_features: dict[frozenset[str], list[str]] = {}
    for chip in kvcache.chips():
        features = frozenset(_native.extension().chip_features(chip))
        by_features.setdefault(features, []).append(chip)
    return [ChipClass(tuple(chips), key) for key, chips in by_features.items()]


# --- What an op becomes -----------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The instructions that the example of an op becomes, each with how often it is
    there, or why it is an error."""

    instructions: tuple[tuple[str, int], ...] = ()
    error: str = ""


@cache
def _whole_cache_ops() -> tuple[Op, ...]:
    """Ops of host code that become kernels."""
    whole = [family for family in families() if family.name in ("WholeCacheOps", "AttentionOps", "SplitOps", "SelectionOps")]
    return tuple(op for family in whole for op in family.ops)


@cache
def outcome(op: Op, chip: str) -> Outcome:
    """Compiles the example of an op for a chip, in a kernel unless it becomes one."""
    source = op.example if op in _whole_cache_ops() else as_kernel(op.example)
    try:
        program = kvcache.compile(source, chip, filename=op.name)
    except kvcache.CompileError as error:
        return Outcome(error=error.diagnostics[0].message)
    ptx = _RECORDER.sub("", "".join(binary.ptx for binary in program.binaries))
    found = [*filter(_OF_INTEREST.match, _INSTRUCTION.findall(ptx))]
    return Outcome(_count(found, _CALL.findall(ptx)))


@cache
def host_outcome(op: Op) -> Outcome:
    """Compiles the example of an op that host code has, which no chip changes."""
    result = run_opt(op.example, "--kvcache-to-ptx=chip=sm_90a host=true")
    return Outcome(_count([], _HOST_CALL.findall(result.stdout)), result.stderr)


def _count(instructions: list[str], calls: list[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(instructions + [f"call {name}" for name in calls]).items())


def outcome_in(family: Family, op: Op, chip: str) -> Outcome:
    """Lowers the example of an op, in host code or for a chip."""
    return host_outcome(op) if family.name == "TensorMapOps" else outcome(op, chip)


def as_kernel(example: str) -> str:
    """The function of an example as a kernel.

    Results become arguments of an external function. What threads share and a kernel
    can't get as an argument, tiles, fragments and barriers, it makes itself.
    """
    aliases = dict(_ALIAS.findall(example))
    externals: list[str] = []

    def use(values: str, types: str) -> str:
        externals.append(f"func.func private @use_{len(externals)}({types})\n")
        return f"  func.call @use_{len(externals) - 1}({values}) : ({types}) -> ()\n"

    def begin(match: re.Match[str]) -> str:
        arguments, shared, tensors, body = [], [], [], ""
        for argument in filter(None, re.split(r",\s*(?=%)", match[2])):
            name, type_ = argument.split(": ", 1)
            meaning = aliases.get(type_.removeprefix("!"), type_)
            if meaning.startswith("!kvcache.tile<"):
                # Others may have written to it, so that its bytes are not undefined.
                body += f"  {name} = kvcache.alloc_tile : {type_}\n" + use(name, type_)
            elif meaning.startswith("!kvcache.tmem_tile<"):
                tensors.append((name, type_))
            elif fragment := _FRAGMENT.match(meaning):
                arguments.append(f"{name}_element: {fragment[1]}")
                body += f"  {name} = kvcache.splat {name}_element : {type_}\n"
            elif meaning.startswith("!nvgpu.mbarrier"):
                body += f"  {name} = nvgpu.mbarrier.create -> {type_}\n"
            else:
                is_shared = "#gpu.address_space<workgroup>" in meaning
                (shared if is_shared else arguments).append(argument)
        if tensors:
            names, types = (", ".join(each) for each in zip(*tensors))
            body += f"  {names} = kvcache.tmem_alloc : {types}\n"
        workgroup = f" workgroup({', '.join(shared)})" if shared else ""
        head = f"gpu.func @{match[1]}({', '.join(arguments)}){workgroup} kernel {{\n"
        return head + body

    def end(match: re.Match[str]) -> str:
        return (use(match[1], match[2]) if match[1] else "") + "  gpu.return\n"

    function = _RETURN.sub(end, _SIGNATURE.sub(begin, example))
    start = function.index("gpu.func")
    head, function = function[:start], function[start:]
    return f"{head}gpu.module @example {{\n{''.join(externals)}{function}}}\n"


# --- Pages ------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """An overview, and a page for each class of chips, by their places in the site."""
    known, all_families = classes(), families()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = {
            (op.name, chips): pool.submit(outcome_in, family, op, chips.chips[0])
            for chips in known
            for family in all_families
            for op in family.ops
        }
    class_pages = {
        chips.page: _class_page(
            chips,
            all_families,
            {op: found.result() for (op, op_chips), found in outcomes.items() if op_chips == chips},
        )
        for chips in known
    }
    return {"chips/index.md": _overview(known), **class_pages}


def _overview(known: list[ChipClass]) -> str:
    """A table of what each class of chips can do."""
    features = dict.fromkeys(
        name
        for chips in known
        for name in _native.extension().chip_features(chips.chips[0])
    )
    titles = (
        f"[{chips.title}]({chips.page.removeprefix('chips/')})" for chips in known
    )
    rows = [
        _row([name, *("yes" if name in chips.features else "" for chips in known)])
        for name in features
    ]
    return "\n".join(
        [
            "---\nhide: [toc]\n---\n\n# Chips",
            "",
            "Kernels compile for these chips, here by what they can do; a page for",
            "each says what the ops become there.",
            "",
            _row(["", *titles]),
            _row(["---", *[":-:"] * len(known)]),
            *rows,
            "",
        ]
    )


def _class_page(
    chips: ChipClass, all_families: list[Family], found: dict[str, Outcome]
) -> str:
    lines = [
        f"---\ntitle: {chips.title}\n---\n\n# {chips.title}",
        "",
        "What the example of each op in the [reference](../reference/index.md)",
        "becomes: copies, accesses, barriers and conversions, and how often each of",
        f"them is in the PTX for {chips.chips[0]}. What an example has beside its op",
        "is counted, too.",
        "",
    ]
    for family in all_families:
        lines += [f"## {family.title}", "", "| op | becomes |", "| --- | --- |"]
        for op in family.ops:
            link = f"[`{op.name}`](../{family.page}#{op.name})"
            lines.append(_row([link, _describe(found[op.name])]))
        lines.append("")
    return "\n".join(lines)


def _describe(found: Outcome) -> str:
    if found.error:
        return f"*error:* {found.error}"
    if not found.instructions:
        return "addresses and arithmetic"
    return "<br>".join(
        f"`{name}`" + (f" × {count}" if count > 1 else "")
        for name, count in found.instructions
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
