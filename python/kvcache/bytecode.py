# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reader of bytecode, in a separate process.

MLIR's reader trusts its input: damaged bytecode may end the process, or never end. So a
child process reads it and rewrites it for the compiler. Run as a script, this file is
the child; of the package, it needs only the extension.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

_MAGIC = b"ML\xefR"
# The limits of a child: more address space than at the start, and seconds of a
# processor and of a clock.
_MEMORY = 4 << 30
_MEMORY_PER_BYTE = 256
_SECONDS = 10
_BYTES_PER_SECOND = 100_000
_PATIENCE = 10  # seconds of the clock per second of the processor


def is_bytecode(contents: bytes) -> bool:
    """Whether a source is bytecode, valid or not, and not text."""
    return contents.startswith(_MAGIC)


def rewrite(contents: bytes, filename: str, extension: str) -> tuple[bytes, list[Any]]:
    """Returns a module's rewritten bytecode, and the diagnostics.

    On errors, the bytes are empty, and there is a diagnostic.

    Args:
        contents: The bytecode.
        filename: The source's name in diagnostics.
        extension: The path of the extension module.

    Raises:
        OSError: No process can be started.
    """
    if not sys.executable:
        raise OSError("bytecode is read by a separate process: no Python to start")
    seconds = _count_seconds(len(contents))
    try:
        child = subprocess.run(
            [sys.executable, "-I", "-S", __file__, extension],
            input=json.dumps(filename).encode() + b"\n" + contents,
            capture_output=True,
            timeout=seconds * _PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b"", [_report(filename, "MLIR's reader does not end")]
    if child.returncode == -signal.SIGXCPU:
        return b"", [_report(filename, f"MLIR's reader takes over {seconds} seconds")]
    if child.returncode:
        return b"", [_report(filename, _explain(child.returncode, child.stderr))]
    header, _, written = child.stdout.partition(b"\n")
    return written, json.loads(header)


def _report(filename: str, reason: str) -> tuple[str, str, str, int, int, list[Any]]:
    """Makes an error without a place."""
    return ("error", f"damaged bytecode in {filename}: {reason}", "", 0, 0, [])


def _explain(code: int, output: bytes) -> str:
    """Describes why a child ended without a report."""
    if code < 0:
        number = -code
        known = number in list(signal.Signals)
        name = signal.Signals(number).name if known else f"signal {number}"
        return f"MLIR's reader ends with {name}"
    last = output.decode(errors="replace").strip().splitlines()[-1:]
    return f"MLIR's reader ends with code {code}: {''.join(last)}"


def _count_seconds(size: int) -> int:
    return _SECONDS + size // _BYTES_PER_SECOND


def _count_mapped() -> int:
    """Counts the address space of this process, terabytes with sanitizers."""
    try:
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmSize"].split()[0]) << 10
    except (OSError, KeyError):
        return 0


def _limit(size: int) -> None:
    """Limits the resources of this process, where the system supports it."""
    try:
        import resource
    except ImportError:
        return
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: _count_seconds(size),
        resource.RLIMIT_AS: _count_mapped() + _MEMORY + size * _MEMORY_PER_BYTE,
    }
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY or most < hard:
            resource.setrlimit(kind, (most, hard))


def main() -> None:
    """Reads a file name in JSON and a module, and writes diagnostics and the module."""
    header, _, contents = sys.stdin.buffer.read().partition(b"\n")
    loader = ExtensionFileLoader("_kvcache", sys.argv[1])
    spec = spec_from_file_location("_kvcache", sys.argv[1], loader=loader)
    assert spec
    extension = module_from_spec(spec)
    loader.exec_module(extension)
    _limit(len(contents))
    module, diagnostics = extension.parse_module(contents, json.loads(header))
    sys.stdout.buffer.write(json.dumps(diagnostics).encode() + b"\n")
    if module:
        sys.stdout.buffer.write(module.bytecode())


if __name__ == "__main__":
    main()
