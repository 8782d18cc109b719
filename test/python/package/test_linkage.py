"""Tests that a process has one MLIR: everything links the shared libMLIR, and nothing else.

The only exception is kvcache-opt, which contains MLIR and links no shared one. Two copies
of MLIR in a process have two sets of type ids and command-line options, and fail in ways
that are hard to read. Component archives (MLIRIR, MLIROptLib, ...) and the MLIRCAPI*
targets bring a second copy in.
"""

import re
import subprocess
import sys

import pytest
from binaries import is_elf, needed_libraries, run_tool
from places import BUILD, ROOT

# Defined once per copy of MLIR and of LLVM, and never inline.
CORE_SYMBOLS = (
    "_ZN4mlir11MLIRContextC",
    "_ZN4mlir9Operation6createE",
    "_ZN4mlir11PassManagerC",
    "_ZN4llvm11LLVMContextC",
    "_ZN4llvm2cl20getRegisteredOptions",
)


def symbols(path, kind):
    """Mangled names, from the full and from the dynamic symbol table."""
    tables = run_tool("nm", kind, path) + run_tool("nm", "--dynamic", kind, path)
    return {
        line.split()[-1].split("@")[0] for line in tables.splitlines() if line.strip()
    }


def built_binaries():
    """Executables, shared libraries and extension modules; no object files."""
    return sorted(
        path
        for folder in ("bin", "lib", "python", "wheel")
        for path in (BUILD / folder).rglob("*")
        if is_elf(path) and path.suffix != ".o"
    )


STATIC = BUILD / "bin" / "kvcache-opt"
BINARIES = [path for path in built_binaries() if path != STATIC]


def test_something_is_built():
    assert BUILD / "bin" / "kvcache-reduce" in BINARIES
    assert STATIC.exists()


@pytest.mark.long
def test_kvcache_opt_has_the_only_mlir_in_itself():
    assert any(name.startswith(CORE_SYMBOLS) for name in symbols(STATIC, "--defined-only"))
    needed = needed_libraries(STATIC)
    assert not [name for name in needed if "LLVM" in name or "MLIR" in name]


@pytest.mark.parametrize("arguments", [["--load-dialect-plugin=a.so"], ["-load-pass-plugin", "a.so"]])
def test_kvcache_opt_rejects_plugins(arguments):
    result = subprocess.run([STATIC, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert f"'{arguments[0]}': a kvcache-opt that has MLIR in itself loads no plugins" in result.stderr


@pytest.mark.parametrize("path", BINARIES, ids=lambda path: str(path.relative_to(BUILD)))
def test_no_second_mlir(path):
    copies = {
        name
        for name in symbols(path, "--defined-only")
        if name.startswith(CORE_SYMBOLS)
    }
    assert not copies, "holds a copy of MLIR or LLVM: link MLIR and LLVM only"


@pytest.mark.parametrize("path", BINARIES, ids=lambda path: str(path.relative_to(BUILD)))
def test_mlir_is_the_shared_library(path):
    """Files that call into MLIR need libMLIR.so."""
    uses_mlir = any(
        name.startswith("_ZN4mlir") for name in symbols(path, "--undefined-only")
    )
    if uses_mlir:
        needed = needed_libraries(path)
        assert any(name.startswith("libMLIR.so") for name in needed), needed


# Libraries that compiled host code calls work with a driver but no compiler.
RUNTIME = sorted((BUILD / "lib").glob("libkvcache_*.so"))


def test_the_runtime_is_built():
    names = {path.stem.removeprefix("libkvcache_") for path in RUNTIME}
    assert {"runtime", "cuda", "trace"} <= names


@pytest.mark.parametrize("path", RUNTIME, ids=lambda path: path.stem)
def test_the_runtime_needs_no_compiler_and_no_driver(path):
    needed = needed_libraries(path)
    assert not [name for name in needed if "LLVM" in name or "MLIR" in name]
    assert not [name for name in needed if "cuda" in name.lower()]
    undefined = symbols(path, "--undefined-only")
    assert not [name for name in undefined if name.startswith(("_ZN4llvm", "_ZN4mlir"))]
    assert not [name for name in undefined if name.startswith("cu")]


def exported_symbols(path):
    lines = run_tool("nm", "--dynamic", "--defined-only", path).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def exported_functions(path):
    """The symbols except templates of the C++ library, which libraries may share."""
    lines = run_tool("nm", "--dynamic", "--defined-only", path).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] == "T"}


def test_the_c_library_exports_c_only():
    """Its C++ symbols are private, and never bind to another library's."""
    exported = exported_symbols(BUILD / "lib" / "libKVCacheCAPI.so")
    assert "mlirKVCacheCompile" in exported
    assert not [name for name in exported if not name.startswith("mlir")]


def test_the_c_library_exports_what_its_headers_declare():
    headers = [
        header
        for product in (".", "emulator")
        for folder, pattern in (
            (ROOT / product / "include/kvcache-c", "*.h"),
            (BUILD / product / "include/kvcache", "*/Passes.capi.h.inc"),
        )
        for header in folder.glob(pattern)
    ]
    text = "\n".join(header.read_text() for header in headers)
    declared = set(re.findall(r"\b(mlir\w*KVCache\w+)\(", text))
    exported = exported_symbols(BUILD / "lib" / "libKVCacheCAPI.so")
    assert len(declared) > 100
    assert declared == {name for name in exported if "KVCache" in name}


def declared_functions(header):
    text = (ROOT / "include/kvcache/Runtime" / header).read_text()
    return set(re.findall(r"\b(kvcache\w+)\((?!\))", text))


@pytest.mark.parametrize(
    "library, headers",
    [
        ("cuda", ["Device.h", "Copies.h"]),
        ("trace", ["Device.h"]),
        ("runtime", ["Bodies.h", "Host.h", "TVMFFI.h"]),
    ],
)
def test_the_runtime_exports_what_its_headers_declare(library, headers):
    path = BUILD / "lib" / f"libkvcache_{library}.so"
    declared = set().union(*map(declared_functions, headers))
    assert exported_functions(path) == declared


def test_the_extension_keeps_the_c_api_to_itself():
    (extension,) = (BUILD / "python/kvcache").glob("_kvcache.*.so")
    exported = exported_functions(extension)
    assert "PyInit__kvcache" in exported
    assert not [name for name in exported if name.startswith("mlir")]


def test_compiled_code_makes_no_llvm_global():
    """A library with its own LLVM, such as Triton's, may load after ours was used."""
    program = """
import ctypes
import kvcache
kvcache.jit("func.func @f(%x: memref<4xf32, strided<[?]>>, %y: memref<4xf32>) {"
            "memref.copy %x, %y : memref<4xf32, strided<[?]>> to memref<4xf32>\\nreturn }")
print(hasattr(ctypes.CDLL(None), "LLVMContextCreate"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
