"""Kernels that lack one instruction which synchronizes.

The NVVM-level module of a right program is changed in one place: an arrival, a fence, a barrier or a copy's group is
dropped, a wait is taken as done, or other bytes are expected. One module has all mutants of a kernel, and is compiled
once: an argument says which of them runs.
"""

import re
import subprocess

from places import OPT

import kvcache

PASS = "convert-nvvm-to-emulator"
NAME = r"(?:nvvm\.(?:mbarrier|fence|wgmma\.(?:fence|commit|wait)|tcgen05\.(?:commit|dealloc|(?:fence|wait) <)|cluster|barrier0|barrier|bar\.warp|cp\.async|memory\.barrier)[\w.]*|llvm\.fence)"
WITHOUT_RESULT = re.compile(rf"^ *({NAME})\b[^\n]*\n", re.MULTILINE)
WAIT = re.compile(r"^ *(%\w+) = (nvvm\.mbarrier\.(?:try_wait|test\.wait)[\w.]*)\b[^\n]*\n", re.MULTILINE)
EXPECT = re.compile(r"^( *nvvm\.mbarrier\.(?:arrive\.)?expect_tx) (%\w+), (%\w+)( [^\n]*\n)", re.MULTILINE)
GROUP = re.compile(
    r"^( *nvvm\.(?:cp\.async\.(?:bulk\.)?wait.group|wgmma\.wait\.group\.sync\.aligned)) (\d+)", re.MULTILINE
)


def to_nvvm(source, chip):
    """The module that the emulator takes; the pipeline leaves it as it is."""
    pipeline = f"--kvcache-to-emulator=chip={chip}"
    printed = [f"--mlir-print-ir-before={PASS}", "--mlir-disable-threading"]
    command = [OPT, "-", pipeline, *printed, "-o", "/dev/null"]
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stderr


def without_others(source, function):
    """The source without the other functions that host code can call, and their kernels."""
    return re.sub(rf"^func\.func @(?!{function}\()\w+\(.*?^}}\n", "", source, flags=re.MULTILINE | re.DOTALL)


def get_kernel(text, name):
    """Where the kernel's body begins and ends."""
    start = re.search(rf"^    llvm\.func @{name}\(.*\{{\n", text, re.MULTILINE).end()
    return start, text.index("\n    }\n", start) + 1


def some_of_each(changes, most=6):
    """Not each of a hundred copies: at most so many that have changed alike."""
    alike = {}
    for what, *change in changes:
        alike.setdefault(what, []).append((f"{what} {len(alike.get(what, [])) + 1}", *change))
    for group in alike.values():
        yield from group[:: -(-len(group) // most)]


def find_changes(text, kernel):
    """(what changes, the line that does, what it becomes)."""
    begin, end = get_kernel(text, kernel)
    for match in WITHOUT_RESULT.finditer(text, begin, end):
        yield f"drop {match[1]}", match.span(), ""
    for match in WAIT.finditer(text, begin, end):
        yield f"skip {match[2]}", match.span(), f"{match[1]} = llvm.mlir.constant(true) : i1\n"
    for match in EXPECT.finditer(text, begin, end):
        for number, change_of_bytes in enumerate((-16, 16)):
            name = f"%bytes_{match.start()}_{number}"
            more = (
                f"{name}_more = llvm.mlir.constant({change_of_bytes} : i32) : i32\n"
                f"{name} = llvm.add {match[3]}, {name}_more : i32\n"
            )
            line = f"{more}{match[1]} {match[2]}, {name}{match[4]}"
            yield f"expect {change_of_bytes:+}", match.span(), line
    for match in GROUP.finditer(text, begin, end):
        begin_of_line, end_of_line = match.start(), text.index("\n", match.end()) + 1
        rest = text[match.end() : end_of_line]
        yield "wait for a group less", (begin_of_line, end_of_line), f"{match[1]} {int(match[2]) + 1}{rest}"


def choose(place, line, changed):
    """``line``, or what it becomes for a mutant of one of the numbers in ``changed``."""
    result = re.match(r" *(%\w+) =", line)
    rest, passed = f"^rest_{place}", ""
    cases = {f"^case_{place}_{number}": text for number, text in [(0, line), *changed.items()]}
    blocks = []
    for case, text in cases.items():
        if result:
            name = f"%result{case[5:]}"
            text = text.replace(f"{result[1]} =", f"{name} =")
            passed = f"({name} : i1)"
        blocks.append(f"{case}:\n{text}llvm.br {rest}{passed}\n")
    numbers = ", ".join(f"{number}: ^case_{place}_{number}" for number in changed)
    argument = f"({result[1]}: i1)" if result else ""
    return (
        f"llvm.switch %mutant : i32, ^case_{place}_0 [{numbers}]\n"
        f"{''.join(blocks)}{rest}{argument}:\n"
    )


def with_mutants(text, kernel):
    """The module with all mutants, of which the last argument of host functions takes one, and their names.

    Number 0 is the kernel as it was.
    """
    names, lines = ["none"], {}
    for what, span, becomes in some_of_each(find_changes(text, kernel)):
        lines.setdefault(span, {})[len(names)] = becomes
        names.append(what)
    for place, ((begin, end), changed) in enumerate(sorted(lines.items(), reverse=True)):
        text = text[:begin] + choose(place, text[begin:end], changed) + text[end:]
    text = re.sub(rf"^(    llvm\.func @{kernel}\()", r"\1%mutant: i32, ", text, flags=re.MULTILINE)
    parameters = rf"(^    llvm\.func @{kernel}\(.*?kvcache\.parameters = \[)"
    more = r'\1{name = "mutant", type = i32}, '
    text = re.sub(parameters, more, text, count=1, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(rf"(gpu\.launch_func .*@{kernel} .*\bargs\()", r"\1%mutant : i32, ", text)
    # Names of functions that launch no kernel stay as they are.
    return re.sub(r"^(  func\.func @\w+\()(?=.*\{$)", r"\1%mutant: i32, ", text, flags=re.MULTILINE), names


class Mutant:
    """A program, of which calls run one of its mutants."""

    def __init__(self, program, number):
        self.program, self.number = program, number

    def call(self, name, *arguments):
        self.program.call(name, self.number, *arguments)


def survivors(source, kernel, chip, run):
    """The mutants that the sanitizer lets pass, with what became of their results."""
    text, names = with_mutants(to_nvvm(source, chip), kernel)
    program = kvcache.jit(text, target=f"emulator:{chip}", opt_level=0)
    right = run(Mutant(program, 0))
    found, missed = 0, {}
    for number, what in enumerate(names[1:], 1):
        try:
            result = run(Mutant(program, number))
        except kvcache.CheckError:
            found += 1
        else:
            missed[what] = "same" if result.tobytes() == right.tobytes() else "wrong"
            # What a copy of another tile has left is there: tests of data find it.
            if missed[what] == "wrong" and what.startswith("drop nvvm.cp.async.shared"):
                found += missed.pop(what) == "wrong"
    return found, missed


def check(source, kernel, chip, run, at_least, benign=()):
    found, missed = survivors(source, kernel, chip, run)
    assert missed == dict.fromkeys(benign, "same")
    assert found >= at_least
