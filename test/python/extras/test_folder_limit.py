"""Tests of the limit of the store in a folder, which processes share and scan."""

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from folders import HEADER, count_bytes, find_file, list_files, open_folder, read_usage
from places import ROOT
from stored_values import SIZE, get, make_key, make_value, put


@pytest.mark.parametrize("seed", range(3))
def test_least_recently_used_files_are_removed_first(tmp_path, seed):
    draw = random.Random(seed)
    most = 12 * (SIZE + HEADER)
    used = []  # the numbers of stored values, the least recently used first
    with open_folder(tmp_path, most, threads=1) as folder:
        for moment in range(120):
            number = draw.randrange(24)
            if draw.random() < 0.6:
                assert put(folder, number) == [True]
                used = [n for n in used if n != number] + [number]
            elif get(folder, number):
                used = [n for n in used if n != number] + [number]
            else:
                assert number not in used or not find_file(tmp_path, number).exists()
            if find_file(tmp_path, number).exists():
                os.utime(find_file(tmp_path, number), (moment, moment))
            present = [n for n in used if find_file(tmp_path, n).exists()]
            assert present == used[len(used) - len(present) :], "a file that was used later is gone"
            assert count_bytes(tmp_path) <= most
            used = present
        assert len(used) > 8
        assert read_usage(tmp_path) == count_bytes(tmp_path)


def test_rename_during_a_scan_keeps_the_limit(tmp_path, monkeypatch):
    """A put renames its file after a scan has left the target, and before it lists ``tmp``."""
    most, rename, scandir = 3 * (SIZE + HEADER), os.rename, os.scandir
    scanned, renamed = threading.Event(), threading.Event()

    def rename_during_scan(*paths):
        scanned.wait(1)
        rename(*paths)
        renamed.set()

    @contextlib.contextmanager
    def scan(path):
        if os.path.basename(path) == "tmp":
            scanned.set()
            renamed.wait(1)
        with scandir(path) as entries:
            yield sorted(entries, key=lambda entry: entry.name)  # "tmp" comes last

    with open_folder(tmp_path, most) as first, open_folder(tmp_path, most) as second:
        monkeypatch.setattr(os, "rename", rename_during_scan)
        monkeypatch.setattr(os, "scandir", scan)
        value = make_value(1, 2 * SIZE)
        copy = first.begin_put([make_key(1)], [memoryview(value)])
        while not os.listdir(tmp_path / "tmp"):
            time.sleep(1e-3)
        put(second, 2, size=2 * SIZE)
        copy.wait()
        assert count_bytes(tmp_path) <= most


def test_value_larger_than_the_folder_is_refused(tmp_path):
    with open_folder(tmp_path, 5000) as folder:
        put(folder, 1, 2)
        assert put(folder, 3, size=5000) == [False]
        assert get(folder, 1, 2) == [1, 2]


def test_start_removes_stale_files_alone(tmp_path):
    with open_folder(tmp_path) as folder:
        put(folder, 1)
    foreign = [tmp_path / name for name in ("tmp/thesis.tex", "db/precious.sqlite")]
    dead, alive = (tmp_path / "tmp" / f"{letter * 16}-7" for letter in "ab")
    for path in (dead, alive, *foreign):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
    (tmp_path / "usage").write_bytes(b"\xff" * 8)  # a count of a process that died
    lock = open(alive)
    fcntl.flock(lock, fcntl.LOCK_EX)  # as a process that writes the file
    with lock, open_folder(tmp_path) as folder:
        assert not dead.exists() and alive.exists() and all(path.exists() for path in foreign)
        assert read_usage(tmp_path) == count_bytes(tmp_path) - 200
        assert put(folder, 2) == [True]
        folder.remove([make_key(i) for i in range(9000)])
        assert folder.find([make_key(1), make_key(2)]) == [False] * 2
        assert all(path.exists() for path in foreign)


def test_files_that_vanish_during_a_scan_do_no_harm(tmp_path, monkeypatch):
    with open_folder(tmp_path, 5 * (SIZE + HEADER)) as folder:
        put(folder, 1, 2, 3, 4)
        scandir, files = os.scandir, list_files(tmp_path)[:2]

        def vanish(path):
            entries = scandir(path)
            if files and len(os.path.basename(path)) == 2:
                files.pop().unlink()
            return entries

        monkeypatch.setattr(os, "scandir", vanish)
        assert put(folder, 5, 6, 7) == [True] * 3
        monkeypatch.undo()
        assert not files and count_bytes(tmp_path) <= 5 * (SIZE + HEADER)


def test_processes_that_are_killed_leave_no_wrong_value(tmp_path):
    """Three processes share the folder, of which one is killed and restarted again and again."""
    most, total = 30 * 40_000, 0
    command = [sys.executable, ROOT / "test/python/support/store_process.py", tmp_path, str(most)]

    def start(seed):
        return subprocess.Popen([*command, str(seed)], stdout=subprocess.PIPE, text=True)

    processes = [start(seed) for seed in range(3)]
    try:
        for seed in range(3, 11):
            for process in processes:
                assert process.stdout.readline() != "wrong\n"
            time.sleep(random.Random(seed).uniform(0.1, 0.3))
            victim = processes.pop(0)
            victim.send_signal(signal.SIGKILL)
            output = victim.stdout.read()
            victim.wait()
            assert "wrong" not in output
            total += output.count("hits")
            assert count_bytes(tmp_path) <= most
            processes.append(start(seed))
    finally:
        for process in processes:
            process.kill()
            assert "wrong" not in process.stdout.read()
            process.wait()
    assert total > 20
    with open_folder(tmp_path, most) as folder:
        numbers = [number for number in range(60) if find_file(tmp_path, number).exists()]
        assert numbers and get(folder, *numbers, size=40_000) == numbers
        assert read_usage(tmp_path) == count_bytes(tmp_path)
