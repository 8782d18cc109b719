"""Folders of stores, and their files."""

import contextlib
import fcntl

from kvcache.stores import Folder
from stored_values import make_key

HEADER = 64


def open_folder(path, max_bytes=10**6, deadline=10.0, **options):
    return Folder(path, max_bytes, deadline=deadline, **options)


def list_files(path):
    return [file for file in path.glob("??/*") if len(file.parent.name) == 2]


def find_file(path, number):
    name = make_key(number).hex()
    return path / name[:2] / name[2:]


def count_bytes(path):
    """Counts the bytes of all files while no process adds one."""
    with open(path / "usage") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        count = 0
        for file in (*list_files(path), *path.glob("tmp/*")):
            with contextlib.suppress(FileNotFoundError):  # removed, or renamed
                count += file.stat().st_size
        return count


def read_usage(path):
    return int.from_bytes((path / "usage").read_bytes(), "little")
