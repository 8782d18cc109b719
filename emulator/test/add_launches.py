#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a module with a host function, of the same name, for each kernel that no host function launches.

The function launches one thread, or as a comment above the kernel says:

    // LAUNCH: 64 threads, 4 blocks, clusters of 2, 48 bytes of dynamic shared memory, uninitialized memory

Each parameter gets memory of its own, of zeros: a memref of its type, a pointer 1024 bytes. With `then @print`, the
function calls this host function afterwards, with the memory. A function of several launches, of kernels with the same
parameters and memory, is a comment alone:

    // LAUNCHES @name: 64 threads, 4 blocks, @write, programmatic @read, then @print

The functions are at the end, so that lines keep their numbers. So are the symbols of a file in Inputs that the module
names, for its kernels or for its host code:

    // PRELUDE: tensor-memory.mlir
    // HOST PRELUDE: tile-maps.mlir
"""

import pathlib
import re
import sys

KERNEL = re.compile(r"^(?: *// LAUNCH: (.*)\n)? *gpu\.func @(\w+)\(([^)]*)\)[^{\n]* kernel\b", re.MULTILINE)
LAUNCHES = re.compile(r"^ *// LAUNCHES @(\w+): (.*)$", re.MULTILINE)
POINTERS, MEMORY = ("!llvm.ptr<1>", "!llvm.ptr"), "memref<256xi32>"


PHRASES = {
    "threads": r"(\d+) threads?",
    "blocks": r"(\d+) blocks?",
    "cluster": r"clusters of (\d+)",
    "bytes": r"(\d+) bytes of dynamic shared memory",
    "uninitialized": r"(uninitialized) memory",
    "kernel": r"((?:programmatic )?@\w+)",
    "then": r"then @(\w+)",
}


def parse_phrases(text):
    """The values of a comment, by the names of ``PHRASES``, and its kernels."""
    values, kernels = {"threads": "1", "blocks": "1"}, []
    for phrase in filter(None, text.split(", ")):
        matches = {name: match for name, pattern in PHRASES.items() if (match := re.fullmatch(pattern, phrase))}
        if not matches:
            sys.exit(f"unknown phrase in 'LAUNCH': {phrase}")
        kernels += [matches.pop("kernel")[1]] if "kernel" in matches else []
        values.update({name: match[1] for name, match in matches.items()})
    return values, kernels


def write_argument(name, parameter_type, aliases, is_initialized):
    """The lines that make an argument for a kernel's parameter, the argument, and its memory, with their types."""
    memory_type = MEMORY if parameter_type in POINTERS else parameter_type
    memory = argument = f"%{name}"
    lines = [f"{memory} = gpu.alloc() : {memory_type}"]
    if is_initialized:
        element_type = re.search(r"x([a-z]+\d+)[,>]", aliases.get(memory_type, memory_type))[1]
        zero = 0 if element_type.startswith("i") else 0.0
        lines.append(f"{memory}_zero = arith.constant {zero} : {element_type}")
        lines.append(f"gpu.memset {memory}, {memory}_zero : {memory_type}, {element_type}")
    if parameter_type in POINTERS:
        argument = f"{memory}_pointer"
        lines += [
            f"{memory}_index = memref.extract_aligned_pointer_as_index {memory} : {MEMORY} -> index",
            f"{memory}_number = arith.index_cast {memory}_index : index to i64",
            f"{argument} = llvm.inttoptr {memory}_number : i64 to {parameter_type}",
        ]
    return lines, (argument, parameter_type), (memory, memory_type)


def write_launch(kernel, values, arguments):
    """The launch of a kernel, as ``@kernel`` or ``programmatic @kernel``."""
    attributes, _, name = kernel.rpartition("@")
    launch = f"gpu.launch_func @kernels::@{name}"
    if "cluster" in values:
        launch += " clusters in (%cluster, %one, %one)"
    launch += " blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)"
    if "bytes" in values:
        launch += " dynamic_shared_memory_size %bytes"
    if arguments:
        launch += f" args({', '.join(f'{argument} : {parameter}' for argument, parameter in arguments)})"
    return launch + (" {kvcache.programmatic}" if attributes else "")


def write_host_function(name, phrases, parameters, aliases):
    """A host function that launches kernels with the same parameters, or the kernel of its own name.

    ``parameters`` has those of each kernel, ``aliases`` the types that the module gives a name.
    """
    values, kernels = parse_phrases(phrases)
    kernels = kernels or [f"@{name}"]
    lines = ["%one = arith.constant 1 : index"]
    for key, value in values.items():
        if value.isdigit():
            lines.append(f"%{key} = arith.constant {value} : {'i32' if key == 'bytes' else 'index'}")
    arguments, memories = [], []
    types = re.findall(r"%\w+: ([^%]*[^%, ])", parameters[kernels[0].rpartition("@")[2]])
    for number, parameter_type in enumerate(types):
        made, argument, memory = write_argument(
            f"memory{number}", parameter_type, aliases, "uninitialized" not in values
        )
        lines += made
        arguments.append(argument)
        memories.append(memory)
    lines += [write_launch(kernel, values, arguments) for kernel in kernels]
    if "then" in values:
        names, memory_types = zip(*memories, strict=True)
        lines.append(f"func.call @{values['then']}({', '.join(names)}) : ({', '.join(memory_types)}) -> ()")
    return "\n  ".join([f"func.func @{name}() {{", *lines, "return"]) + "\n}\n"


def add_preludes(text, folder):
    """The text, with the preludes that it names before the brace of the module of kernels, and before the last one."""
    kernels_end = text.index("\n}\n", text.index("gpu.module @kernels")) + 1
    end = text.rindex("}")
    for_kernels, for_host = (
        "".join(
            (folder / "Inputs" / name).read_text() for name in re.findall(rf"^// {word}: (.*)$", text, re.MULTILINE)
        )
        for word in ("PRELUDE", "HOST PRELUDE")
    )
    return text[:kernels_end] + for_kernels + text[kernels_end:end] + for_host + text[end:]


def add_launches(text):
    """The text, with a function before its last brace for each comment of launches and each kernel not launched."""
    end = text.rindex("}")
    aliases = dict(re.findall(r"^(!\w+) = (.*)$", text, re.MULTILINE))
    parameters = {kernel: types for _, kernel, types in KERNEL.findall(text)}
    sequences = LAUNCHES.findall(text)
    launched = re.findall(r"gpu\.launch_func [^@\n]*@kernels::@(\w+)", text)
    launched += [name for _, phrases in sequences for name in re.findall(r"@(\w+)", phrases)]
    sequences += [(kernel, how or "") for how, kernel, _ in KERNEL.findall(text) if kernel not in launched]
    functions = [write_host_function(name, phrases, parameters, aliases) for name, phrases in sequences]
    return text[:end] + "".join(functions) + text[end:]


def complete(path):
    """The text of a test with its preludes and launches."""
    return add_launches(add_preludes(path.read_text(), path.parent))


if __name__ == "__main__":
    sys.stdout.write(complete(pathlib.Path(sys.argv[1])))
