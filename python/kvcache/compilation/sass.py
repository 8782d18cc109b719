# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the machine code that nvdisasm prints: instructions, loops, and accesses of memory.

What is counted:

- An instruction is what a thread can reach, thus without the padding at the end: NOPs, and a branch to itself.
- A loop is a natural one: the blocks between a backward branch and its target, which dominates it. The main loop is
  the longest of all, with those inside; the inner loop is the longest one that holds no other. One that only asks a
  barrier again and again is no loop here.
- An access is an instruction that names memory; its width is what one thread moves. The size of a bulk or tensor copy
  is known only when it runs.
- Bytes in flight are those of global loads whose registers no instruction has used yet, in the order of the text, predicated
  ones included: the most there are at any place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_INSTRUCTION = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:(?P<guard>@!?U?P\w+)\s+)?(?P<name>[A-Z][\w.]*)\s*(?P<operands>[^;]*?)\s*;"
)
_LABEL = re.compile(r"^\s*([.$\w]+):\s*$")
_TARGET = re.compile(r"`\(([^)]+)\)")
_REGISTER = re.compile(r"(?<![\w.])R(\d+)")

_WIDTHS = {"256": 32, "128": 16, "64": 8, "U16": 2, "S16": 2, "16": 2, "U8": 1, "S8": 1}
_MATRICES = {"LDSM", "STSM"}
"""Their last part is the number of matrices, of which each gives a thread 4 bytes."""
_BULK = {"UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG"}

_ACCESSES = {
    "global load": {"LDG"},
    "global store": {"STG"},
    "global atomic": {"ATOM", "ATOMG", "RED", "REDG"},
    "global to shared": {"LDGSTS"},
    "shared load": {"LDS", "LDSM"},
    "shared store": {"STS", "STSM", "STAS"},
    "shared atomic": {"ATOMS", "REDS"},
    "local load": {"LDL"},
    "local store": {"STL"},
    "generic load": {"LD"},
    "generic store": {"ST"},
}
_SPACES = {name: space for space, names in _ACCESSES.items() for name in names}


@dataclass(frozen=True)
class Instruction:
    """One line of SASS: ``LDG.E.128 R4, desc[UR4][R2.64]`` has the base name ``LDG``."""

    name: str
    operands: str
    is_guarded: bool

    @property
    def base(self) -> str:
        return self.name.partition(".")[0]

    @property
    def parts(self) -> list[str]:
        return self.name.split(".")[1:]

    @property
    def width(self) -> int:
        """Bytes that a thread moves, for an access whose name says so."""
        if self.base in _MATRICES:
            last = self.parts[-1]
            return 4 * (int(last) if last.isdigit() else 1)
        return next((_WIDTHS[part] for part in reversed(self.parts) if part in _WIDTHS), 4)

    @property
    def products(self) -> int:
        """Multiplications and additions of a warp, for an instruction of tensor cores whose name says so."""
        if self.base == "HMMA" and self.parts[0] == "16816":
            return 2 * 16 * 8 * 16
        if self.base == "HGMMA":  # four warps have 64 rows together
            _, n, k = map(int, self.parts[0].split("x"))
            return 2 * 16 * n * k
        return 0

    @property
    def registers(self) -> set[int]:
        """The registers that the text names; of a wide operand that is the first."""
        return {int(number) for number in _REGISTER.findall(self.operands)}

    @property
    def falls_through(self) -> bool:
        """Whether the next instruction may follow this one."""
        if self.base in ("EXIT", "RET", "BRX", "JMX"):
            return self.is_guarded
        if self.base in ("BRA", "JMP"):  # a condition may also be an operand
            return self.is_guarded or not self.operands.startswith("`(")
        return True

    @property
    def target(self) -> str | None:
        """The label of a branch or call."""
        if self.base not in ("BRA", "JMP", "CALL"):
            return None
        match = _TARGET.search(self.operands)
        return match[1] if match else None


@dataclass
class Block:
    """Instructions that run one after the other, and the blocks that may follow."""

    instructions: list[Instruction]
    successors: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Loop:
    """The instructions of a loop, and the bytes that a thread reads in an iteration, but for bulk copies.

    ``bytes_in_flight`` are those of an iteration, and ``by_name`` counts instructions by their base names. ``products`` are
    the multiplications and additions of a warp on tensor cores.
    """

    instructions: int
    global_bytes: int
    shared_bytes: int
    bytes_in_flight: int = field(default=0, compare=False)
    by_name: dict[str, int] = field(default_factory=dict, compare=False)
    products: int = field(default=0, compare=False)

    @property
    def matrix_instructions(self) -> int:
        """The instructions of tensor cores: ``HMMA``, ``HGMMA``, ``UTCHMMA`` and kin."""
        return sum(count for name, count in self.by_name.items() if name.endswith("MMA"))


@dataclass(frozen=True)
class MachineCode:
    """The facts about a kernel's code.

    Attributes:
        instructions: Their number.
        main_loop: The longest loop, or None.
        inner_loop: The longest loop that holds no other, or None.
        accesses: By kind (``"global load"``) and width in bytes, how many instructions.
        bulk_copies: By name (``"UTMALDG.2D"``), how many instructions.
        bytes_in_flight: The most that global loads have under way to registers.
        product_loop: The shortest of the loops with the most products of tensor cores, or None.
        loops_of_products: The loops inside it that hold no other.
    """

    instructions: int
    main_loop: Loop | None
    inner_loop: Loop | None
    accesses: dict[str, dict[int, int]]
    bulk_copies: dict[str, int]
    bytes_in_flight: int
    product_loop: Loop | None = None
    loops_of_products: list[Loop] = field(default_factory=list)


def read(sass: str) -> MachineCode:
    """Reads one kernel's SASS."""
    blocks = _split_blocks(sass)
    reachable = _find_reachable(blocks)
    code = [instruction for index in sorted(reachable) for instruction in blocks[index].instructions]
    loops = _find_loops(blocks, reachable)
    innermost = [body for body in loops if not any(other < body for other in loops)]
    described = _describe_all(blocks, loops)
    most = max((loop.matrix_instructions for loop in described), default=0)
    having = [loop for loop in described if loop.matrix_instructions == most > 0]
    product_loop = min(having, key=lambda loop: loop.instructions, default=None)
    return MachineCode(
        len(code),
        _find_longest(described),
        _find_longest(_describe_all(blocks, innermost)),
        _count_accesses(code),
        dict(sorted(Counter(i.name for i in code if i.base in _BULK).items())),
        _find_bytes_in_flight(code),
        product_loop,
        _describe_all(blocks, _find_inside(innermost, loops, described, product_loop)),
    )


def _split_blocks(sass: str) -> list[Block]:
    blocks = [Block([])]
    starts: dict[str, int] = {}
    for item in _read_lines(sass):
        last = blocks[-1].instructions
        if last and (isinstance(item, str) or not last[-1].falls_through or last[-1].target):
            blocks.append(Block([]))
        if isinstance(item, str):
            starts[item] = len(blocks) - 1
        else:
            blocks[-1].instructions.append(item)
    for index, block in enumerate(blocks):
        last_one = block.instructions[-1] if block.instructions else None
        if index + 1 < len(blocks) and (last_one is None or last_one.falls_through):
            block.successors.add(index + 1)
        if last_one and last_one.target in starts:
            block.successors.add(starts[last_one.target])
    return blocks


def _read_lines(sass: str) -> Iterator[str | Instruction]:
    """Labels, as strings, and instructions without NOPs."""
    for line in sass.splitlines():
        if label := _LABEL.match(line):
            yield label[1]
        elif (match := _INSTRUCTION.search(line)) and match["name"] != "NOP":
            yield Instruction(match["name"], match["operands"], match["guard"] is not None)


def _find_reachable(blocks: list[Block]) -> set[int]:
    found, work = set(), [0]
    while work:
        index = work.pop()
        if index not in found:
            found.add(index)
            work += blocks[index].successors
    return found


def _find_dominators(reachable: set[int], predecessors: dict[int, set[int]]) -> dict[int, set[int]]:
    """By block, the blocks on every path to it, itself included."""
    dominators = {index: set(reachable) for index in reachable} | {0: {0}}
    changed = True
    while changed:
        changed = False
        for index in sorted(reachable - {0}):
            new = set.intersection(*(dominators[before] for before in predecessors[index])) | {index}
            changed |= new != dominators[index]
            dominators[index] = new
    return dominators


def count_overlap(listing: str) -> int:
    """Counts the exponentials of a thread while an MMA is in flight, at most.

    They follow a wait for all MMAs but one, or the last instruction of an MMA, and end
    with the next wait or MMA.
    """
    most = found = 0
    is_open = False
    for line in listing.splitlines():
        if "WARPGROUP.DEPBAR" in line:
            is_open, found = "gsb0, 0x1" in line, 0
        elif "HGMMA" in line:
            is_open, found = "gsb0" in line, 0
        elif is_open and "MUFU.EX2" in line:
            found += 1
            most = max(most, found)
    return most


def _find_loops(blocks: list[Block], reachable: set[int]) -> list[set[int]]:
    """The blocks of each loop; loops with the same start are one."""
    predecessors: dict[int, set[int]] = {index: set() for index in reachable}
    for index in reachable:
        for after in blocks[index].successors:
            predecessors[after].add(index)
    dominators = _find_dominators(reachable, predecessors)
    loops: dict[int, set[int]] = {}
    for index in reachable:
        for header in blocks[index].successors & dominators[index]:
            loops.setdefault(header, set()).update(_collect_body(header, index, predecessors))
    return [body for body in loops.values() if not _only_waits(blocks, body)]


def _collect_body(header: int, latch: int, predecessors: dict[int, set[int]]) -> set[int]:
    body, work = {header}, [latch]
    while work:
        index = work.pop()
        if index not in body:
            body.add(index)
            work += predecessors[index]
    return body


def _only_waits(blocks: list[Block], body: set[int]) -> bool:
    names = {instruction.base for index in body for instruction in blocks[index].instructions}
    works = any(name in _SPACES or name in _BULK or name.endswith("MMA") for name in names)
    return "SYNCS" in names and not works


def _describe_all(blocks: list[Block], loops: list[set[int]]) -> list[Loop]:
    return [_describe([instruction for index in sorted(body) for instruction in blocks[index].instructions]) for body in loops]


def _find_inside(
    innermost: list[set[int]], loops: list[set[int]], described: list[Loop], outer: Loop | None
) -> list[set[int]]:
    """The loops of ``innermost`` inside the one that ``outer`` describes."""
    body = next((body for body, loop in zip(loops, described) if loop is outer), set[int]())
    return [inner for inner in innermost if inner < body]


def _find_longest(loops: list[Loop]) -> Loop | None:
    return max(loops, key=lambda loop: loop.instructions, default=None)


def _describe(code: list[Instruction]) -> Loop:
    read = Counter[str]()
    for instruction in code:
        read[_SPACES.get(instruction.base, "")] += instruction.width
    global_bytes = read["global load"] + read["global to shared"]
    names = Counter(instruction.base for instruction in code)
    products = sum(instruction.products for instruction in code)
    return Loop(len(code), global_bytes, read["shared load"], _find_bytes_in_flight(code), dict(names), products)


def _count_accesses(code: list[Instruction]) -> dict[str, dict[int, int]]:
    accesses: dict[str, Counter[int]] = {}
    for instruction in code:
        if kind := _SPACES.get(instruction.base):
            accesses.setdefault(kind, Counter())[instruction.width] += 1
    return {kind: dict(sorted(accesses[kind].items())) for kind in _ACCESSES if kind in accesses}


def _find_bytes_in_flight(code: list[Instruction]) -> int:
    pending: list[tuple[set[int], int]] = []  # destination registers and bytes of a load
    most = 0
    for instruction in code:
        touched = instruction.registers
        pending = [(registers, width) for registers, width in pending if not registers & touched]
        if instruction.base == "LDG":
            pending.append((_list_destinations(instruction), instruction.width))
            most = max(most, sum(width for _, width in pending))
    return most


def _list_destinations(load: Instruction) -> set[int]:
    """The registers before the address; a load of 32 bytes names two, of four each."""
    named = [int(number) for number in _REGISTER.findall(load.operands.partition("[")[0])]
    each = max(load.width // 4 // max(len(named), 1), 1)
    return {first + i for first in named for i in range(each)}
