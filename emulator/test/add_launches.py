#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a module with a host function, of the same name, for each kernel that no host function launches.

The function launches one thread, or as a comment above the kernel says:

    // LAUNCH: 64 threads, 4 blocks, clusters of 2, 48 bytes of dynamic shared memory, uninitialized memory

Each parameter gets memory of its own, of zeros: a memref of its type, a pointer 1024 bytes. The functions are at the
end, so that lines keep their numbers. So are the symbols of a file in Inputs that the module names:

    // PRELUDE: tensor-memory.mlir
"""

import pathlib
import re
import sys

KERNEL = re.compile(r"^(?: *// LAUNCH: (.*)\n)? *gpu\.func @(\w+)\(([^)]*)\)[^{\n]* kernel\b", re.MULTILINE)
POINTER, MEMORY = "!llvm.ptr<1>", "memref<256xi32>"


PHRASES = {
    "threads": r"(\d+) threads?",
    "blocks": r"(\d+) blocks?",
    "cluster": r"clusters of (\d+)",
    "bytes": r"(\d+) bytes of dynamic shared memory",
    "uninitialized": r"(uninitialized) memory",
}


def parse_phrases(text):
    """The numbers of a comment, by the names of ``PHRASES``."""
    values = {"threads": "1", "blocks": "1"}
    for phrase in filter(None, text.split(", ")):
        matches = {name: match for name, pattern in PHRASES.items() if (match := re.fullmatch(pattern, phrase))}
        if not matches:
            sys.exit(f"unknown phrase in 'LAUNCH': {phrase}")
        values.update({name: match[1] for name, match in matches.items()})
    return values


def write_argument(name, parameter_type, aliases, is_initialized):
    """The lines that make an argument for a kernel's parameter, and the argument with its type."""
    memory_type = MEMORY if parameter_type == POINTER else parameter_type
    lines = [f"%{name} = gpu.alloc() : {memory_type}"]
    if is_initialized:
        element_type = re.search(r"x([a-z]+\d+)[,>]", aliases.get(memory_type, memory_type))[1]
        zero = 0 if element_type.startswith("i") else 0.0
        lines.append(f"%{name}_zero = arith.constant {zero} : {element_type}")
        lines.append(f"gpu.memset %{name}, %{name}_zero : {memory_type}, {element_type}")
    if parameter_type == POINTER:
        lines += [
            f"%{name}_index = memref.extract_aligned_pointer_as_index %{name} : {MEMORY} -> index",
            f"%{name}_number = arith.index_cast %{name}_index : index to i64",
            f"%{name}_pointer = llvm.inttoptr %{name}_number : i64 to {POINTER}",
        ]
        name += "_pointer"
    return lines, f"%{name} : {parameter_type}"


def write_launch(kernel, parameters, how, aliases):
    """A host function that launches a kernel. ``aliases`` has the types that the module gives a name."""
    values = parse_phrases(how)
    lines = ["%one = arith.constant 1 : index"]
    for name, value in values.items():
        if value.isdigit():
            lines.append(f"%{name} = arith.constant {value} : {'i32' if name == 'bytes' else 'index'}")
    arguments = []
    for number, parameter_type in enumerate(re.findall(r"%\w+: ([^%]*[^%, ])", parameters)):
        made, argument = write_argument(f"memory{number}", parameter_type, aliases, "uninitialized" not in values)
        lines += made
        arguments.append(argument)
    launch = f"gpu.launch_func @kernels::@{kernel}"
    if "cluster" in values:
        launch += " clusters in (%cluster, %one, %one)"
    launch += " blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)"
    if "bytes" in values:
        launch += " dynamic_shared_memory_size %bytes"
    if arguments:
        launch += f" args({', '.join(arguments)})"
    return "\n  ".join([f"func.func @{kernel}() {{", *lines, launch, "return"]) + "\n}\n"


def add_preludes(text, folder):
    """The text, with the preludes that it names before the brace of the module of kernels."""
    end = text.index("\n}\n", text.index("gpu.module @kernels")) + 1
    names = re.findall(r"^// PRELUDE: (.*)$", text, re.MULTILINE)
    return text[:end] + "".join((folder / "Inputs" / name).read_text() for name in names) + text[end:]


def add_launches(text):
    """The text, with a function before its last brace for each kernel that it does not launch."""
    end = text.rindex("}")
    aliases = dict(re.findall(r"^(!\w+) = (.*)$", text, re.MULTILINE))
    launched = re.findall(r"gpu\.launch_func [^@\n]*@kernels::@(\w+)", text)
    launches = [
        write_launch(kernel, parameters, how or "", aliases)
        for how, kernel, parameters in KERNEL.findall(text)
        if kernel not in launched
    ]
    return text[:end] + "".join(launches) + text[end:]


def complete(path):
    """The text of a test with its preludes and launches."""
    return add_launches(add_preludes(path.read_text(), path.parent))


if __name__ == "__main__":
    sys.stdout.write(complete(pathlib.Path(sys.argv[1])))
