"""Tests of the store of kvcache.ops: nothing is compiled twice, and no damaged file is used."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from edits import edit

import kvcache
from kvcache import _native
from kvcache.compilation import store

SOURCE = """
func.func @twice(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<?xf32>
  %w = arith.addf %v, %v : f32
  memref.store %w, %x[%c0] : memref<?xf32>
  return
}
"""

# Appends a row for a target, and prints the number of compilations, and the row.
PROGRAM = """
import sys
import numpy as np
import kvcache
from kvcache import _native

counts = dict.fromkeys(("jit", "compile"), 0)
extension = _native.extension()


class Counting:
    def __getattr__(self, name):
        if name in counts:
            counts[name] += 1
        return getattr(extension, name)


_native.extension = Counting
target = sys.argv[1]
params = kvcache.KVCacheParams("f8E4M3FN", 2, 32, page_size=4, total_num_layers=1)
append = kvcache.ops.append(params, target, "f32", norm=32, static_scales=True)
manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=8, num_pages=2)
manager.claim("r", np.arange(3))
rows = np.arange(2 * 3 * 2 * 32, dtype=np.float32).reshape(2, 3, 2, 32)
append(manager.inputs(["r"]), 0, *rows, norm=np.ones(32, np.float32), key_scale=0.5, value_scale=2)
kernels = append.compile("sm_90a").kernels
print(counts["jit"], counts["compile"], manager.blocks[0].tobytes().hex(), list(kernels))
"""


def start(folder, target="cpu"):
    environment = os.environ | {"KVCACHE_CACHE": str(folder)}
    command = [sys.executable, "-c", PROGRAM, target]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE)


def finish(process):
    """The number of compilations, and the result."""
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    jits, compiles, result = output.split(maxsplit=2)
    return int(jits), int(compiles), result


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu", "emulator:sm_90a"])
def test_a_second_process_compiles_nothing(target, tmp_path):
    jits, compiles, result = finish(start(tmp_path, target))
    assert (jits, compiles) == (1, 1)
    assert finish(start(tmp_path, target)) == (0, 0, result)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.long
def test_two_processes_at_once(tmp_path):
    results = [finish(process) for process in [start(tmp_path) for _ in range(2)]]
    assert results[0][2] == results[1][2]
    assert len(list(tmp_path.iterdir())) == 2
    assert finish(start(tmp_path))[:2] == (0, 0)


@pytest.mark.long
def test_processes_find_files_of_operations_damaged(tmp_path):
    right = finish(start(tmp_path))
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in kept:
        damage(path)
    results = [finish(process) for process in [start(tmp_path) for _ in range(2)]]
    assert all(result[2] == right[2] for result in results)
    # Each file by one of them, or by both at the same time.
    assert all(map(any, zip(*(result[:2] for result in results))))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == kept


def test_store_off_keeps_nothing(tmp_path):
    assert finish(start("off"))[:2] == (1, 1)
    assert finish(start("off"))[:2] == (1, 1)


# --- In this process ------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The names of the compiled functions."""
    monkeypatch.setenv("KVCACHE_CACHE", str(tmp_path))
    extension, names = _native.extension(), []

    class Noting:
        def __getattr__(self, name):
            if name in ("jit", "compile"):
                names.append(name)
            return getattr(extension, name)

    monkeypatch.setattr(_native, "extension", Noting)
    return names


def call(**options):
    x = np.array([21], np.float32)
    kvcache.jit(SOURCE, cached=True, **options).call("twice", x)
    assert x[0] == 42


def damage(path):
    contents = bytearray(path.read_bytes())
    contents[-1] ^= 1
    path.write_bytes(contents)


@pytest.mark.parametrize(
    "harm",
    [damage, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(path.read_bytes()[:-9])],
    ids=["bit", "empty", "short"],
)
def test_damaged_file_is_compiled_again(harm, compiled, tmp_path):
    call()
    (path,) = tmp_path.iterdir()
    right = path.read_bytes()
    harm(path)
    call()
    assert compiled == ["jit"] * 2
    assert path.read_bytes() == right
    call()
    assert compiled == ["jit"] * 2


def test_image_of_another_program_is_recompiled(compiled, monkeypatch, tmp_path):
    """The hash is right, but the contents have no such functions."""
    call()
    (path,) = tmp_path.iterdir()
    store.Entry(path).write(b'0[{"name": "twice", "text": "", "arguments": [], "num_results": 0}]\0')
    call()
    assert compiled == ["jit"] * 2


def test_other_versions_compile_for_themselves(compiled, monkeypatch, tmp_path):
    call()
    monkeypatch.setattr(store, "__version__", "0.0.1")
    call()
    call()
    assert compiled == ["jit"] * 2
    assert len(list(tmp_path.iterdir())) == 2


def test_other_builds_compile_for_themselves(compiled, monkeypatch, tmp_path):
    """A build has the linker's identifier, or else the hash of its file."""
    extension = sys.modules["kvcache._kvcache"]
    identifier = extension.build_id()
    assert len(identifier) == 20
    assert b"GNU\0" + identifier in Path(extension.__file__).read_bytes()
    for count, other in enumerate([identifier, b"another", b""], 1):
        store._describe_compiler.cache_clear()
        monkeypatch.setattr(extension, "build_id", lambda other=other: other)
        call()
        call()
        assert len(compiled) == len(list(tmp_path.iterdir())) == count
    store._describe_compiler.cache_clear()


def test_options_and_sources_are_distinguished(compiled):
    for options in ({}, {"opt_level": 0}, {"bounds_checks": True}, {"target": "emulator:sm_80"}, {"filename": "a"}):
        call(**options)
        call(**options)
    assert len(compiled) == 5
    kvcache.jit(edit(SOURCE, ("addf", "mulf")), cached=True)
    assert len(compiled) == 6
    for options in ({}, {"opt_level": 1}, {"target": "sm_80"}):
        modules = [kvcache.compile(KERNEL, cached=True, **options) for _ in range(2)]
        assert modules[0].kernel("k").ptx == modules[1].kernel("k").ptx
    assert len(compiled) == 9


KERNEL = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf32>) kernel {
    gpu.return
  }
}
"""


def test_uncached_compilation_stores_nothing(compiled, tmp_path):
    kvcache.jit(SOURCE)
    kvcache.compile(KERNEL)
    assert not list(tmp_path.iterdir())


def test_warnings_are_given_each_time(compiled, monkeypatch, tmp_path):
    right = _native.extension().jit

    def warn(*arguments):
        jit, _ = right(*arguments)
        return jit, [("warning", "so so", "", 0, 0, [])]

    monkeypatch.setattr(type(_native.extension()), "jit", staticmethod(warn), raising=False)
    for _ in range(2):
        with pytest.warns(kvcache.CompileWarning, match="so so"):
            call()
    assert not list(tmp_path.iterdir())


def test_unusable_folder_is_ignored(compiled, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("KVCACHE_CACHE", str(file / "folder"))
    call()
    call()
    assert compiled == ["jit"] * 2


def replace_by_fifo(path):
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


UNTRUSTED = {
    "fifo": (replace_by_fifo, "it is not a regular file"),
    "link": (replace_by_link, "Too many levels of symbolic links"),
    "folder": (replace_by_folder, "Is a directory"),
    "file of group": (lambda path: path.chmod(0o620), r"others may write to it \(mode 620\)"),
    "file of all": (lambda path: path.chmod(0o602), r"others may write to it \(mode 602\)"),
    "group's folder": (lambda path: path.parent.chmod(0o770), r"may write to it \(mode 770\)"),
    "folder of all": (lambda path: path.parent.chmod(0o1777), r"may write to it \(mode 1777\)"),
    "other user": (lambda path: os.chown(path, 65534, -1), "it is of user 65534, and this"),
    "other user's folder": (lambda path: os.chown(path.parent, 65534, -1), "it is of user 65534"),
}


@pytest.mark.parametrize("name", UNTRUSTED)
def test_files_that_others_may_have_written_are_not_run(name, compiled, tmp_path):
    harm, message = UNTRUSTED[name]
    if "user" in name and os.geteuid():
        pytest.skip("only root gives files away")
    call()
    (path,) = tmp_path.iterdir()
    harm(path)
    with pytest.warns(RuntimeWarning, match=f"is not used: .*{message}") as warned:
        call()
    assert {warning.filename for warning in warned} == {__file__}
    assert compiled == ["jit"] * 2
    if "folder" in name:
        tmp_path.chmod(0o700)
        os.chown(tmp_path, os.geteuid(), -1)
    if name != "folder":  # which no file replaces
        call()
        call()
        assert len(compiled) <= 3


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_files_that_others_may_only_read_are_run(mode, compiled, tmp_path):
    tmp_path.chmod(mode)
    call()
    (path,) = tmp_path.iterdir()
    path.chmod(mode & 0o644)
    call()
    assert compiled == ["jit"]


@pytest.mark.parametrize("name", ["jit", "compile"])
def test_libdevice_that_changes_is_linked_anew(name, compiled, tmp_path):
    library = tmp_path / "toolkit" / "nvvm" / "libdevice" / "libdevice.10.bc"
    library.parent.mkdir(parents=True)
    library.write_text("no bitcode, which this kernel does not need")
    options = {"jit": {"target": "cuda:sm_90a"}, "compile": {}}[name]

    def make():
        getattr(kvcache, name)(KERNEL, cached=True, toolkit=tmp_path / "toolkit", **options)

    make()
    make()
    assert compiled == [name]
    library.write_text("another one")
    make()
    assert compiled == [name] * 2


def test_threads(compiled):
    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count = len(compiled)
    call()
    assert 1 <= count <= 4 and len(compiled) == count


def test_threads_make_one_operation(compiled, tmp_path):
    """Threads that ask for an operation at the same time compile it once, and call it at the same time."""
    params = kvcache.KVCacheParams("bf16", 2, 48, page_size=4, total_num_layers=1)
    start_line, made, blocks = threading.Barrier(4), [], []

    def append():
        manager = kvcache.PagedKVCacheManager(params, max_batch_size=1, max_seq_len=8, num_pages=2)
        manager.claim("r", np.arange(3))
        rows = np.arange(2 * 3 * 2 * 48, dtype=np.float32).reshape(2, 3, 2, 48)
        start_line.wait()
        operation = kvcache.ops.append(params, dtype="f32")
        for _ in range(20):
            operation(manager.inputs(["r"]), 0, *rows)
        made.append(operation)
        blocks.append(manager.blocks[0].tobytes())

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, made))) == 1 and len(made) == 4
    assert len(set(blocks)) == 1 and any(blocks[0])
    assert compiled == ["jit"] and len(list(tmp_path.iterdir())) == 1


# --- Sizes -----------------------------------------------------------------------------


def keep(folder, *numbers, size=400_000):
    """Writes files that were last read one after the other, a second apart, long ago."""
    for number in numbers:
        entry = store.Entry(folder / f"{number:064x}")
        entry.write(bytes(size))
        os.utime(entry.path, (number, number))


def numbers_in(folder):
    return sorted(int(path.name, 16) for path in folder.iterdir())


def test_least_recently_read_files_are_removed_first(monkeypatch, tmp_path):
    monkeypatch.setenv("KVCACHE_CACHE_SIZE", "1")
    keep(tmp_path, 1, 2)
    assert numbers_in(tmp_path) == [1, 2]
    assert store.Entry(tmp_path / f"{1:064x}").read() == bytes(400_000)
    keep(tmp_path, 3)
    assert numbers_in(tmp_path) == [1, 3]
    monkeypatch.setenv("KVCACHE_CACHE_SIZE", "2")
    keep(tmp_path, 4, 5, 6, 7)
    assert numbers_in(tmp_path) == [1, 4, 5, 6, 7]


def test_new_file_stays(monkeypatch, tmp_path):
    monkeypatch.setenv("KVCACHE_CACHE_SIZE", "0")
    keep(tmp_path, 9)
    keep(tmp_path, 8, size=3_000_000)
    assert numbers_in(tmp_path) == [8]


def test_prune_keeps_foreign_files_and_removes_abandoned_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("KVCACHE_CACHE_SIZE", "0")
    names = ["notes.txt", "unfinished-old", "unfinished-new"]
    for name in names:
        (tmp_path / name).write_bytes(bytes(9))
    os.utime(tmp_path / "unfinished-old", (1, 1))
    keep(tmp_path, 1)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"notes.txt", "unfinished-new", f"{1:064x}"}


@pytest.mark.long
def test_processes_prune_the_same_folder(tmp_path):
    program = """
import sys
from pathlib import Path
from kvcache.compilation import store
for number in range(300):
    entry = store.Entry(Path(sys.argv[1], f"{number % 10:064x}"))
    entry.write(bytes([number % 10]) * 300_000)
    found = entry.read()
    assert found is None or found == bytes([number % 10]) * 300_000
"""
    environment = os.environ | {"KVCACHE_CACHE_SIZE": "1"}
    command = [sys.executable, "-c", program, tmp_path]
    for process in [subprocess.Popen(command, env=environment) for _ in range(4)]:
        assert process.wait() == 0
    keep(tmp_path, 11)
    assert 1 <= len(numbers_in(tmp_path)) <= 4


@pytest.mark.parametrize("size", ["-1", "1.5", "many"])
def test_wrong_sizes(size, compiled, monkeypatch):
    monkeypatch.setenv("KVCACHE_CACHE_SIZE", size)
    with pytest.raises(
        ValueError, match=f"expects KVCACHE_CACHE_SIZE to be a number of MiB, got '{size}'"
    ):
        call()


def test_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("KVCACHE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.find_folder() == tmp_path / "kvcache"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.find_folder() == tmp_path / ".cache" / "kvcache"
    monkeypatch.setenv("KVCACHE_CACHE", "off")
    assert store.find_folder() is None
