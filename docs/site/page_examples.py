"""The examples of the documentation, checked: `page_examples.py [--update] [PAGE...]`.

Those in MLIR parse, verify and lower; programs in Python run, those of a page as one,
and print what the page shows; tables are what the commands print that make them; shell
commands that use what is built run. Prints each one that does not, with page and line.
With `--update` pages get what the programs and the commands print, and nothing else is
checked. Needs the package on PYTHONPATH.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kvcache.compilation import toolchain

ROOT = Path(__file__).resolve().parents[2]
OPT = ROOT / "build" / "bin" / "kvcache-opt"
TABLES = sorted((ROOT / "include" / "kvcache" / "IR").glob("*.td"))
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        ROOT / "emulator" / "README.md",
        *(ROOT / "emulator" / "docs").glob("*.md"),
    ]
)

_FENCE = re.compile(
    r"^( *)```(mlir|python|sh|text)\n(.*?)^ *```", re.MULTILINE | re.DOTALL
)
# Tools of build/bin and LLVM, and a compiler for what uses the libraries.
_TOOL = re.compile(r"\b(?:kvcache-opt|kvcache-reduce|mlir-opt|cc)\b")
# A number on its own: those of ops, chips and places are part of a name.
_NUMBER = re.compile(r"(?<![\w.:@#-])\d+(?![\w.:])")
_TOLERANCE = 0.1
# A table, and the command that the paragraph after it names.
_MADE_BY = re.compile(
    r"((?:^\|.*\n)+)\nMade by `(benchmarks/\S+\.py --markdown)`", re.MULTILINE
)
_FUNCTION = re.compile(r"^func\.func (.*?)^\}", re.MULTILINE | re.DOTALL)
# After the lowering no type or op is left but checks and descriptors; attributes may
# stay.
_LEFT_OVER = re.compile(
    r"[!#]kvcache\.(?!tma_tile\b)\w+"
    r"|(?<!!)\bkvcache\.(?!(?:check|encode_tensor_map)\b)\w+\b(?! =)"
)


@dataclass(frozen=True)
class Example:
    """A fenced block: the line of its text is the one after ``line``, from 1 on."""

    path: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{name_of(self.path)}:{self.line}"

    @property
    def end(self) -> int:
        """The line that closes the block."""
        return self.line + self.text.count("\n") + 1

    @property
    def has_functions(self) -> bool:
        """Whether an example in MLIR has more than types and attributes."""
        return "func" in self.text


def name_of(path: Path) -> str:
    """A path as diagnostics show it: from the repository's root on, if it is in it."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def examples_of(path: Path, *languages: str) -> list[Example]:
    """The examples of a page or a .td file in some languages."""
    text = path.read_text()
    return [
        Example(
            path,
            text.count("\n", 0, match.start()) + 1,
            match[2],
            "".join(line.removeprefix(match[1]) for line in match[3].splitlines(True)),
        )
        for match in _FENCE.finditer(text)
        if match[2] in languages
    ]


# --- MLIR -------------------------------------------------------------------------


def run_opt(source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs kvcache-opt on a source."""
    return subprocess.run(
        [OPT, *options], input=source, capture_output=True, text=True, check=False
    )


def as_device_code(source: str) -> str:
    """The functions of an example as those of a GPU module."""
    functions = [*_FUNCTION.finditer(source)]
    body = "\n".join(match[0] for match in functions)
    body = body.replace("func.func", "gpu.func").replace("  return", "  gpu.return")
    return f"{source[: functions[0].start()]}gpu.module @kernels {{\n{body}\n}}\n"


def why_not_verified(source: str) -> str:
    """Describes an error of an example; empty if there is none."""
    result = run_opt(source, "--verify-roundtrip")
    return result.stderr if result.returncode else ""


_BUFFERIZE = (
    "--one-shot-bufferize=bufferize-function-boundaries "
    "function-boundary-type-conversion=identity-layout-map"
)


def why_not_lowered(source: str) -> str:
    """Describes an error of lowering an example's functions; empty if there is none.

    Clusters, TMA and matrix products need a chip.
    """
    expand = "--kvcache-expand-ops"
    if "tensor<" in source:
        buffers = run_opt(source, _BUFFERIZE)
        if buffers.returncode:
            return buffers.stderr
        source = buffers.stdout
    passes = [expand, "--kvcache-expand-copies", "--convert-kvcache-to-memref"]
    has_fragments = "!kvcache.fragment" in source
    multiplies = "kvcache.mma" in source or (has_fragments and "kvcache.tmem" not in source)
    if multiplies or re.search(r"(?<!!)kvcache\.(?:cluster|tma|tmem)_", source):
        source = as_device_code(source)
        attach = f"--kvcache-attach-targets=chip={'sm_90a' if multiplies else 'sm_100a'}"
        lower = ["--kvcache-lower-fragments"] if has_fragments else []
        passes = [expand, attach, *lower, passes[1], "--convert-kvcache-to-nvvm", passes[2]]
    elif "#nvvm.target" in source:
        passes.insert(2, "--convert-kvcache-to-nvvm")
    result = run_opt(source, *passes)
    if result.returncode:
        return result.stderr
    # Messages of checks name ops.
    code = re.sub(r'"[^"\n]*"', "", result.stdout)
    left = sorted(set(_LEFT_OVER.findall(code)))
    return f"not lowered: {', '.join(left)}\n" if left else ""


def _check_mlir(example: Example) -> str:
    message = why_not_verified(example.text)
    if not message and example.has_functions:
        message = why_not_lowered(example.text)
    return message


# --- Python -----------------------------------------------------------------------


@dataclass(frozen=True)
class Output:
    """The output that a page shows at a place, and the printed one."""

    place: str
    shown: str
    printed: str

    @property
    def is_right(self) -> bool:
        return agree(self.shown, self.printed)

    @property
    def difference(self) -> str:
        return f"{self.place}: what is printed is\n{self.printed}"


class WrongProgram(Exception):
    """A program of a page that stops, with where and why."""


def run_programs(path: Path) -> Iterator[Output]:
    """Runs the Python of a page from its top to its end.

    A text block right after one in Python shows what that prints.
    """
    names: dict[str, object] = {"__name__": name_of(path)}
    examples = examples_of(path, "python", "text")
    for example, following in itertools.zip_longest(examples, examples[1:]):
        if example.language != "python":
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.chdir(ROOT):
                source = "\n" * example.line + example.text
                exec(compile(source, path, "exec"), names)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == str(path)]
            line = lines[-1] if lines else getattr(error, "lineno", example.line)
            raise WrongProgram(
                f"{name_of(path)}:{line}: {type(error).__name__}: {error}\n"
            ) from error
        is_shown = following and following.language == "text"
        if is_shown and following.line == example.end + 2:
            yield Output(following.place, following.text, printed.getvalue())


def check_programs(path: Path) -> str:
    """Runs the Python of a page; says where and why it stops, or prints other text."""
    try:
        wrong = next((out for out in run_programs(path) if not out.is_right), None)
    except WrongProgram as error:
        return str(error)
    return wrong.difference if wrong else ""


def agree(shown: str, printed: str) -> bool:
    """Whether texts are equal; but for numbers where ptxas is another than is pinned."""
    if shown == printed or is_pinned():
        return shown == printed
    if _NUMBER.sub("N", shown) != _NUMBER.sub("N", printed):
        return False
    numbers = (map(int, _NUMBER.findall(text)) for text in (shown, printed))
    return all(
        abs(a - b) <= _TOLERANCE * max(a, b) for a, b in zip(*numbers, strict=True)
    )


@cache
def is_pinned() -> bool:
    """Whether ptxas and nvdisasm are those that the numbers of pages are made with."""
    requirements = (ROOT / "requirements.txt").read_text()
    pinned = dict(re.findall(r"^(nvidia-cuda-\w+)==(\S+)$", requirements, re.MULTILINE))
    for package, tool in (("nvcc", "ptxas"), ("nvdisasm", "nvdisasm")):
        found = importlib.metadata.distribution(f"nvidia-cuda-{package}")
        is_of_package = toolchain.find_tool(tool).is_relative_to(found.locate_file(""))
        if found.version != pinned[found.name] or not is_of_package:
            return False
    return True


# --- Tables -----------------------------------------------------------------------


def has_tables(path: Path) -> bool:
    """Whether a page has tables that commands make."""
    return bool(_MADE_BY.search(path.read_text()))


def run_table_commands(path: Path) -> Iterator[Output]:
    """Runs the commands that make the tables of a page."""
    text = path.read_text()
    for match in _MADE_BY.finditer(text):
        place = f"{name_of(path)}:{text.count(chr(10), 0, match.start()) + 1}"
        command = [sys.executable, *match[2].split()]
        made = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        )
        yield Output(place, match[1], made.stdout)


def check_tables(path: Path) -> str:
    """Makes the tables of a page; says which is another now."""
    wrong = next((out for out in run_table_commands(path) if not out.is_right), None)
    return wrong.difference if wrong else ""


def update(path: Path) -> None:
    """Puts what programs and commands print into a page."""
    outputs = [*run_programs(path), *run_table_commands(path)]
    text = path.read_text()
    for output in outputs:
        if text.count(output.shown) != 1:
            raise WrongProgram(f"{output.place}: the page shows this several times\n")
        text = text.replace(output.shown, output.printed)
    path.write_text(text)


# --- Shell ------------------------------------------------------------------------


def commands_of(path: Path) -> list[Example]:
    """The shell examples of a page that use what is built, not those that build it."""
    return [e for e in examples_of(path, "sh") if _TOOL.search(e.text)]


def llvm_tools() -> str:
    """The folder of the LLVM tools that the build tree was configured with."""
    cache = (ROOT / "build" / "CMakeCache.txt").read_text()
    folder = re.search(r"^MLIR_DIR:\w+=(.+)$", cache, re.MULTILINE)
    if not folder:
        raise ValueError("build/CMakeCache.txt names no MLIR_DIR")
    return str(Path(folder[1]).parents[2] / "bin")


def check_commands(path: Path) -> str:
    """Runs the commands of a page from its top to its end; says where one fails.

    They run where the repository's files are, but what they write is not kept.
    """
    script = "trap 'echo $LINENO >failed' ERR; set -eEuo pipefail;"
    for example in commands_of(path):
        script += "\n" * (example.line - script.count("\n")) + example.text
    search = os.pathsep.join([str(OPT.parent), llvm_tools(), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry in ROOT.iterdir():
            (folder / entry.name).symlink_to(entry)
        result = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env={**os.environ, "PATH": search},
            capture_output=True,
            text=True,
            check=False,
        )
        if not result.returncode:
            return ""
        failed = folder / "failed"
        line = failed.read_text().split()[0] if failed.exists() else "1"
    return f"{name_of(path)}:{line}: {result.stderr or 'the command fails'}\n"


# --- All --------------------------------------------------------------------------


def failures(paths: list[Path]) -> Iterator[str]:
    """Describes the errors of the examples of pages, each with its place."""
    sources = [example for path in paths for example in examples_of(path, "mlir")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for example, message in zip(
            sources, pool.map(_check_mlir, sources), strict=True
        ):
            if message:
                yield f"{example.place}: {message}"
        yield from filter(None, pool.map(check_commands, paths))
    yield from filter(None, map(check_programs, paths))
    yield from filter(None, map(check_tables, paths))


def main() -> int:
    names = [name for name in sys.argv[1:] if name != "--update"]
    paths = [Path(name).resolve() for name in names] or TABLES + PAGES
    if "--update" in sys.argv[1:]:
        for path in paths:
            update(path)
        return 0
    found = list(failures(paths))
    sys.stderr.write("".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
