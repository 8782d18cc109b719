# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the text of a PTX module says about its kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?([^{;]*)\{")
_PARAM = re.compile(
    r"\.param\s+(?P<before>.*?)\.(?P<kind>[a-z])(?P<bits>\d+)\s+"
    r"(?P<after>.*?)(?P<name>[\w$%]+)\s*(?:\[(?P<count>\d+)\])?\s*$",
    re.DOTALL,
)
_ALIGN = re.compile(r"\.align\s+(\d+)")
_BLOCK = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


@dataclass(frozen=True)
class Parameter:
    """A kernel parameter: MLIR's type of it, size and offset in bytes."""

    name: str
    type: str
    size: int
    offset: int


@dataclass(frozen=True)
class Entry:
    """A kernel as PTX declares it. ``block_size`` is None where a launch may choose."""

    name: str
    parameters: tuple[Parameter, ...]
    block_size: tuple[int, int, int] | None


def parse_entries(ptx: str) -> list[Entry]:
    """Returns the kernels of a PTX module in the order of its text."""
    text = re.sub(r"//[^\n]*", "", ptx)
    return [
        Entry(match[1], _parse_parameters(match[2] or ""), _parse_block_size(match[3]))
        for match in _ENTRY.finditer(text)
    ]


def _parse_parameters(text: str) -> tuple[Parameter, ...]:
    parameters: list[Parameter] = []
    end = 0
    for declaration in filter(str.strip, text.split(",")):
        match = _PARAM.search(declaration)
        if not match:
            raise ValueError(f"not a PTX parameter: {declaration.strip()!r}")
        element, count = int(match["bits"]) // 8, match["count"]
        # A pointer's .align is about what it points to.
        align = None if ".ptr" in match["after"] else _ALIGN.search(match["before"])
        alignment = int(align[1]) if align else element
        offset = -(-end // alignment) * alignment
        size = element * int(count or 1)
        kind = "ptr" if ".ptr" in match["after"] else f"{match['kind']}{match['bits']}"
        parameters.append(
            Parameter(
                match["name"], f"{kind}[{count}]" if count else kind, size, offset
            )
        )
        end = offset + size
    return tuple(parameters)


def _parse_block_size(directives: str) -> tuple[int, int, int] | None:
    match = _BLOCK.search(directives)
    return match and (int(match[1]), int(match[2] or 1), int(match[3] or 1))
