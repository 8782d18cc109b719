"""Tests of the store in a folder, with faults of disks, files and processes."""

import errno
import fcntl
import gc
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from folders import HEADER, count_bytes, find_file, list_files, open_folder, read_usage
from kvcache.pages.stores import Store, StoreCopy
from kvcache.stores import Folder
from places import ROOT
from stored_values import SIZE, get, make_key, make_value, put


def test_values_outlive_the_process(tmp_path):
    with open_folder(tmp_path / "a/b") as folder:
        assert isinstance(folder, Store)
        assert get(folder, 1) == []
        assert put(folder, 1, 2, 3) == [True] * 3
        assert put(folder, 1) == [True]
        assert get(folder, 1, 4, 3) == [1, 3]
    with open_folder(tmp_path / "a/b") as folder:
        assert folder.find([make_key(n) for n in (1, 4, 2)]) == [True, False, True]
        folder.remove([make_key(1), make_key(9)])
        assert get(folder, 1, 2, 3) == [2, 3]
        copy = folder.begin_get([], [])
        assert isinstance(copy, StoreCopy) and copy.poll() and copy.done == []


def test_files_are_private(tmp_path):
    with open_folder(tmp_path / "pages") as folder:
        put(folder, 1)
    files = [*(tmp_path / "pages").rglob("*")]
    assert len(files) == 4  # usage, tmp, a folder and its value
    for path in (tmp_path / "pages", *files):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("size", [7, 8, SIZE, (1 << 18) - HEADER, 1 << 18, 700_000])
def test_values_of_any_size_are_whole(tmp_path, size):
    with open_folder(tmp_path, 10**7, fsync=True) as folder:
        assert put(folder, 0, size=size) == [True]
        assert get(folder, 0, size=size) == [0]
        assert find_file(tmp_path, 0).stat().st_size == HEADER + size


# --- Damaged files ------------------------------------------------------------------


@pytest.mark.parametrize("position", [*range(0, HEADER, 5), HEADER, HEADER + 500, HEADER + SIZE - 8])
def test_flipped_bit_is_a_miss_and_removes_the_file(tmp_path, position):
    with open_folder(tmp_path) as folder:
        put(folder, 7)
        file = find_file(tmp_path, 7)
        data = bytearray(file.read_bytes())
        data[position] ^= 1
        file.write_bytes(data)
        assert get(folder, 7) == []
        assert not file.exists() and put(folder, 7) == [True] and get(folder, 7) == [7]


@pytest.mark.parametrize("length", [0, 1, HEADER - 1, HEADER, HEADER + 1, HEADER + SIZE - 2])
def test_short_file_is_a_miss_and_is_removed(tmp_path, length):
    with open_folder(tmp_path) as folder:
        put(folder, 7)
        os.truncate(find_file(tmp_path, 7), length)
        assert get(folder, 7) == [] and not find_file(tmp_path, 7).exists()


def test_buffer_of_another_size_is_a_miss(tmp_path):
    with open_folder(tmp_path) as folder:
        put(folder, 7)
        assert get(folder, 7, size=SIZE + 1) == [] and get(folder, 7) == [7]


def test_value_under_another_key_is_a_miss(tmp_path):
    with open_folder(tmp_path) as folder:
        put(folder, 7)
        find_file(tmp_path, 8).parent.mkdir(exist_ok=True)
        os.rename(find_file(tmp_path, 7), find_file(tmp_path, 8))
        assert get(folder, 7, 8) == []


def test_what_is_no_file_is_a_miss_until_it_is_replaced(tmp_path):
    """A folder stays, and a link or a pipe is replaced by the value."""
    with open_folder(tmp_path) as folder:
        put(folder, 1)
        for number in (2, 3, 4, 5, 6):
            find_file(tmp_path, number).parent.mkdir(exist_ok=True)
        find_file(tmp_path, 2).mkdir()
        find_file(tmp_path, 3).symlink_to(find_file(tmp_path, 1))
        find_file(tmp_path, 4).symlink_to(tmp_path / "nothing")
        os.mkfifo(find_file(tmp_path, 5))
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes/mine").write_text("mine")
        start = time.monotonic()
        assert get(folder, 1, 2, 3, 4, 5) == [1]
        assert folder.find([make_key(n) for n in range(1, 6)]) == [True] + [False] * 4
        assert put(folder, 2, 3, 4, 5) == [False] + [True] * 3
        assert get(folder, 1, 2, 3, 4, 5) == [1, 3, 4, 5] and time.monotonic() - start < 5
        assert read_usage(tmp_path) == count_bytes(tmp_path) - find_file(tmp_path, 2).stat().st_size
        os.mkfifo(find_file(tmp_path, 6))
        folder.remove([make_key(6)])
        assert not find_file(tmp_path, 6).exists()
    with open_folder(tmp_path, 100) as folder:
        assert put(folder, 6) == [False]
    assert (tmp_path / "notes/mine").exists()


def test_unreadable_value_is_removed(tmp_path, monkeypatch):
    with open_folder(tmp_path) as folder:
        put(folder, 1)
        original = os.open

        def refuse(path, *options):  # as for mode 000; root could read it
            if path == str(find_file(tmp_path, 1)):
                raise PermissionError(errno.EACCES, "no", path)
            return original(path, *options)

        monkeypatch.setattr(os, "open", refuse)
        assert get(folder, 1) == [] and folder.find([make_key(1)]) == [False]
        monkeypatch.undo()
        assert put(folder, 1) == [True] and get(folder, 1) == [1]
        assert read_usage(tmp_path) == count_bytes(tmp_path)


@pytest.mark.parametrize("is_whole", [False, True])
def test_removed_folder_is_made_again(tmp_path, is_whole):
    path, (one, other) = tmp_path / "pages", (make_key(1), make_key(2))
    with open_folder(path) as folder, open_folder(path) as second:
        assert put(folder, 1) == [True]
        shutil.rmtree(path if is_whole else path / "tmp")
        assert folder.find([one]) == [not is_whole]
        assert put(folder, 2) == put(second, 3) == [True] and get(folder, 2, 3) == [2, 3]
        assert folder.find([one, other]) == [not is_whole, True]
        assert read_usage(path) == count_bytes(path)


def test_lock_of_another_process_ends_at_the_deadline(tmp_path):
    with open_folder(tmp_path, deadline=0.2) as folder:
        put(folder, 1)
        with open(tmp_path / "usage") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            start = time.monotonic()
            assert put(folder, 2, 3, 4) == [False] * 3 and get(folder, 1) == [1]
            folder.remove([make_key(1)])
            with pytest.raises(TimeoutError, match="another process locks the folder until the deadline"):
                open_folder(tmp_path, deadline=0.1)
            assert time.monotonic() - start < 5
        time.sleep(0.3)
        assert put(folder, 2) == [True] and get(folder, 1, 2) == [1, 2]


@pytest.mark.parametrize("name", [".", "usage", "tmp"])
def test_failed_call_keeps_no_lock(tmp_path, monkeypatch, name):
    """The folder moves, and a file or a pipe takes the place of a part of it."""
    path, moved = tmp_path / "pages", tmp_path / "moved"
    with open_folder(path, deadline=0.3) as folder:
        put(folder, 1)
        path.rename(moved)
        if name != ".":
            path.mkdir()
        (os.mkfifo if name == "usage" else Path.touch)(path / name if name != "." else path)
        folder.remove([make_key(1)])
        with open_folder(moved, deadline=0.3) as other:
            assert put(other, 2) == [True] and get(other, 1, 2) == [1, 2]


def test_invalid_keys_and_buffers_are_misses(tmp_path):
    with open_folder(tmp_path) as folder:
        value = memoryview(bytearray(8))
        keys = [b"", b"x" * 31, None, b"x" * 32, b"x" * 32]
        buffers = [value, value, value, memoryview(bytearray(8))[::2], None]
        for begin in (folder.begin_put, folder.begin_get):
            copy = begin(keys, buffers)
            copy.wait()
            assert copy.done == [False] * 5
        assert folder.find(keys) == [False] * 5
        folder.remove(keys)
        assert put(folder, 1) == [True]


# --- Errors of the system -------------------------------------------------------------


@pytest.mark.parametrize("call, code", [("pwrite", errno.ENOSPC), ("posix_fallocate", errno.ENOSPC), ("rename", errno.EACCES)])
def test_failed_write_stores_nothing(tmp_path, monkeypatch, call, code):
    with open_folder(tmp_path) as folder:
        put(folder, 1)
        original, count = getattr(os, call), [0]

        def fail(*arguments):
            if call == "pwrite" and arguments[2] == 0 and len(arguments[1]) == 8:
                return original(*arguments)  # the count of bytes
            count[0] += 1
            raise OSError(code, "no")

        monkeypatch.setattr(os, call, fail)
        assert put(folder, 2, 3) == [False, False] and count[0] == 2
        monkeypatch.undo()
        assert [*tmp_path.glob("tmp/*")] == [] and len(list_files(tmp_path)) == 1
        assert put(folder, 2) == [True] and get(folder, 1, 2) == [1, 2]
        assert read_usage(tmp_path) == count_bytes(tmp_path)


@pytest.mark.parametrize("call", ["open", "preadv", "utime"])
def test_failed_read_is_a_miss(tmp_path, monkeypatch, call):
    with open_folder(tmp_path) as folder:
        put(folder, 1)

        def fail(*arguments, **options):
            raise OSError(errno.EIO, "no")

        monkeypatch.setattr(os, call, fail)
        assert get(folder, 1) == []
        monkeypatch.undo()
        assert get(folder, 1) == [1]


def cut(parts, size):
    """The first bytes of the buffers of a read: of a value, or of a header and a value."""
    first = memoryview(parts[0])[:size]
    return [first, *(memoryview(part)[: size - len(first)] for part in parts[1:])]


def test_short_writes_and_reads_go_on(tmp_path, monkeypatch):
    pwrite, preadv = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: pwrite(file, memoryview(data)[:100], at))
    monkeypatch.setattr(os, "preadv", lambda file, parts, *rest: preadv(file, cut(parts, 77), *rest))
    with open_folder(tmp_path) as folder:
        assert put(folder, 1) == [True] and get(folder, 1) == [1]


@pytest.mark.parametrize("call", ["preadv", "pwrite"])
def test_copy_that_hangs_ends_at_its_deadline(tmp_path, monkeypatch, call):
    with open_folder(tmp_path, deadline=0.2, threads=2) as folder:
        put(folder, 1)
        original, release = getattr(os, call), threading.Event()

        def hang(*arguments):
            if call == "preadv" and len(arguments) == 4:
                raise BlockingIOError  # nothing is in the system's memory
            if call == "preadv" or len(arguments[1]) != 8:
                release.wait()
            return original(*arguments)

        monkeypatch.setattr(os, call, hang)
        start, value = time.monotonic(), make_value(1, SIZE)
        buffer = bytearray(len(value))
        if call == "preadv":
            copy = folder.begin_get([make_key(1)], [memoryview(buffer)])
        else:
            copy = folder.begin_put([make_key(2)], [memoryview(value)])
        assert not copy.poll()
        copy.wait()
        assert copy.poll() and copy.done == [False] and time.monotonic() - start < 5
        release.set()
        time.sleep(0.1)
        assert copy.done == [False] and not any(buffer)
        monkeypatch.undo()
        assert get(folder, 1, 2) == [1]
        assert [*tmp_path.glob("tmp/*")] == []


def test_benchmark_compares_the_same_bytes(tmp_path):
    command = [sys.executable, ROOT / "benchmarks/stores.py", "--rounds", "1", "--folder", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:3]]
    assert [row[0] for row in rows] == ["written", "read"] and all(float(rate) > 0 for row in rows for rate in row[1:])
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EOPNOTSUPP, None])
def test_values_come_from_memory_or_from_the_disk(tmp_path, monkeypatch, code):
    """Every second read of memory fails, or none of the file system does one."""
    preadv, calls = os.preadv, []

    def read(file, parts, at, *flags):
        calls.append(bool(flags))
        if flags and (code == errno.EOPNOTSUPP or (code and len(calls) % 2)):
            raise OSError(code, "no")
        return preadv(file, cut(parts, 300), at)

    monkeypatch.setattr(os, "preadv", read)
    with open_folder(tmp_path) as folder:
        assert put(folder, 1, 2) == [True] * 2 and get(folder, 1, 2) == [1, 2]
    assert sum(calls) >= 6 and (code is None) == all(calls)


def test_find_that_hangs_ends_at_its_deadline(tmp_path, monkeypatch):
    release = threading.Event()
    with open_folder(tmp_path, deadline=0.2) as folder:
        put(folder, 1)
        monkeypatch.setattr(os, "lstat", lambda path: release.wait())
        assert folder.find([make_key(1)]) == [False]
        release.set()


def test_too_many_jobs_are_refused(tmp_path, monkeypatch):
    release, preadv = threading.Event(), os.preadv

    def read(file, buffers, offset, flags=0):
        # A read of what is in memory never hangs.
        return 0 if flags else release.wait() and preadv(file, buffers, offset)

    with open_folder(tmp_path, deadline=30) as folder:
        put(folder, 1)
        monkeypatch.setattr(os, "preadv", read)
        buffers = [memoryview(bytearray(len(make_value(1, SIZE)))) for _ in range(5000)]
        copy = folder.begin_get([make_key(1)] * 5000, buffers)
        release.set()
        copy.wait()
        assert 4000 < sum(copy.done) < 5000


def test_closed_folder_finds_nothing(tmp_path):
    folder = open_folder(tmp_path)
    put(folder, 1)
    folder.close()
    folder.close()
    assert put(folder, 2) == [False] and get(folder, 1) == [] and folder.find([make_key(1)]) == [False]
    folder.remove([make_key(1)])
    assert find_file(tmp_path, 1).exists()


@pytest.mark.parametrize("is_closed", [True, False])
def test_ended_folder_leaves_no_thread_and_no_file(tmp_path, is_closed):
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    folder = open_folder(tmp_path)
    put(folder, 1)
    assert threading.active_count() == threads + 2
    if is_closed:
        folder.close()
        assert len(os.listdir("/proc/self/fd")) == files
    else:
        del folder
        gc.collect()
    end = time.monotonic() + 10
    while threading.active_count() > threads:
        assert time.monotonic() < end, "a thread goes on"
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize("deadline", [1e10, 1e300])
def test_any_deadline_is_accepted(tmp_path, deadline):
    with open_folder(tmp_path, deadline=deadline) as folder:
        assert put(folder, 1) == [True] and get(folder, 1) == [1]


def test_process_ends_while_a_thread_hangs(tmp_path):
    code = (
        "import os, sys, time, kvcache.stores as s; f = s.Folder(sys.argv[1], 10**6, deadline=0.1);"
        "os.makedirs = lambda *a, **k: time.sleep(100); c = f.begin_put([b'k' * 32], [memoryview(b'v')]);"
        "c.wait(); print(c.done)"
    )
    result = subprocess.run([sys.executable, "-c", code, tmp_path], timeout=30, capture_output=True, text=True)
    assert result.stdout == "[False]\n" and result.returncode == 0


# --- Arguments ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error, message, arguments, options",
    [
        (TypeError, "'path' to be a path, got 3", (3, 1), {}),
        (ValueError, "'max_bytes' to be positive, got 0", ("x", 0), {}),
        (ValueError, "'deadline' to be positive", ("x", 1), {"deadline": 0}),
        (TypeError, "'fsync' to be True or False", ("x", 1), {"fsync": 1}),
        (NotADirectoryError, "expects a store's path to be a folder: .*file'", ("file", 1), {}),
        (OSError, "Not a directory", ("file/x", 1), {}),
        (ValueError, "'path' to be the path of a folder, got an empty one", ("", 1), {}),
        (OSError, "expects the count of a store to be a file: '.*piped/usage'", ("piped", 1), {}),
    ],
)
def test_folder_rejects_invalid_arguments(tmp_path, monkeypatch, error, message, arguments, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "piped").mkdir()
    os.mkfifo(tmp_path / "piped/usage")
    with pytest.raises(error, match=message):
        Folder(*arguments, **{"deadline": 1, **options})


def test_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "xxhash", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'kvcache\[stores\]'"):
        open_folder(tmp_path)
