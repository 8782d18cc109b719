"""Processes that fork from one that has imported an engine, with the project's plugins."""

import multiprocessing
import os
import sys
import tempfile
import tomllib
import traceback
from pathlib import Path

from places import ROOT

TIMEOUT = 120
"""Seconds of a case, which takes two to ten."""


def install_plugins(folder):
    """Writes the metadata of an installed package with the project's entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = Path(folder, "kvcache-0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kvcache\nVersion: 0\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return str(folder)


_PLUGINS = tempfile.TemporaryDirectory()
PLUGINS = install_plugins(_PLUGINS.name)
"""A folder of Python's path with the entry points."""

sys.path.append(PLUGINS)


def run_forked(function, *args, log, redirect=lambda: None, **options):
    """Calls a function in a process of its own, with its output in a file.

    ``redirect`` then moves the handlers of loggers to the file. Returns the result.
    Raises ``AssertionError`` with the child's traceback.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(sender, log, redirect, function, args, options))
    child.start()
    sender.close()
    try:
        if not receiver.poll(TIMEOUT):
            raise AssertionError(f"no result in {TIMEOUT} s: see {log}")
        failed, result = receiver.recv()
    except EOFError:
        child.join()
        raise AssertionError(f"the process ended with {child.exitcode}: see {log}") from None
    finally:
        child.kill()
        child.join()
    assert not failed, f"{result}\nsee {log}"
    return result


def _redirect_output(log):
    sys.stdout = sys.stderr = open(log, "w", buffering=1)
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stdout.fileno(), 2)


def _run(sender, log, redirect, function, args, options):
    _redirect_output(log)
    redirect()
    try:
        import torch

        torch.set_num_threads(1)
        sender.send((False, function(*args, **options)))
    except BaseException:
        sender.send((True, traceback.format_exc()))
    finally:
        sender.close()
        os._exit(0)
