"""The contents of a kernel, from its PTX: counts, registers, memory, and accesses."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from kvcache.compilation import sass, toolchain
from provenance import find_version


REGISTERS, MOST_THREADS, MOST_BLOCKS = 65536, 2048, 32  # of an SM of sm_80, sm_90 and sm_100
SHARED, RESERVED = 228 << 10, 1 << 10  # bytes of an SM of sm_90 and sm_100, and what each block takes besides its own


def count_blocks(registers: int, threads: int, shared: int = 0) -> int:
    """The blocks of an SM at a time: warps get registers in steps of 8 for each thread."""
    by_registers = REGISTERS // (threads * -(-registers // 8) * 8)
    by_shared = SHARED // (shared + RESERVED) if shared else MOST_BLOCKS
    return min(by_registers, by_shared, MOST_BLOCKS, MOST_THREADS // threads)


@dataclass(frozen=True)
class Facts:
    """A kernel after ptxas; bytes of registers, spills and stack are those of a thread, of shared memory of a block."""

    ptx: int
    code: sass.MachineCode
    registers: int
    spill_bytes: int
    stack_bytes: int
    static_shared: int
    dynamic_shared: int

    @property
    def shared_bytes(self) -> int:
        return self.static_shared + self.dynamic_shared


def find_tools() -> dict[str, str]:
    """The versions of the tools that all code passes through."""
    return {tool: find_version(str(toolchain.find_tool(tool))) for tool in ("ptxas", "nvdisasm")}


@functools.cache
def gather(ptx: str, chip: str, dynamic_shared: int) -> Facts:
    """Assembles a module of one kernel for ``chip``.

    Args:
        dynamic_shared: Bytes of shared memory that a launch gives.

    Raises:
        ToolchainError: ptxas or nvdisasm fails, or is missing.
        ValueError: The module has no kernel, or several.
    """
    assembly = toolchain.assemble(ptx, chip)
    if len(assembly.resources) != 1:
        names = ", ".join(sorted(assembly.resources)) or "none"
        raise ValueError(f"expects one kernel in the module, got {names}")
    ((name, resources),) = assembly.resources.items()
    return Facts(
        count_ptx_instructions(ptx),
        sass.read(toolchain.disassemble(assembly.cubin)[name]),
        resources.registers,
        resources.spill_bytes,
        resources.stack_bytes,
        resources.shared_bytes,
        dynamic_shared,
    )


def count_ptx_instructions(ptx: str) -> int:
    """The instructions of a PTX module, wherever its lines end; directives are none."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.DOTALL)
    text = re.sub(r"^\s*\.[^;{]*$", "", text, flags=re.MULTILINE)  # a directive that is a line
    text = re.sub(r"\.(?:entry|func)\b[^{]*\{", ";", text)
    statements = (re.sub(r"^(?:[\s{}]|[$\w]+:)+", "", statement) for statement in text.split(";"))
    return sum(statement[:1].isalpha() or statement[:1] == "@" for statement in statements)
