"""Servers of engines that run the commands of a page."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys

from engine_models import generate_tokens, save, save_tokenizer
from forked import PLUGINS

PROMPT = "A cache of"
TIMEOUT = 240
"""Seconds of the commands, which take 30 on an idle machine."""


def make_model(folder):
    """Writes a model with a tokenizer, and returns its words after the prompt."""
    save("qwen3", folder, "float32")
    save_tokenizer(folder)
    tokens = generate_tokens(folder, [[0] * len(PROMPT.split())], max_tokens=16)
    return " ".join(f"w{token}" for token in tokens[0])


def find_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_server(script, environment, *folders):
    """Runs commands that start a server and ask it; returns the text of the answer, and all lines.

    ``folders`` are more folders of Python's path.
    """
    assert shutil.which("curl"), "the commands of the page need curl"
    environment["PYTHONPATH"] = os.pathsep.join([PLUGINS, *folders, environment["PYTHONPATH"]])
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), environment["PATH"]])
    shell = subprocess.Popen(
        ["bash", "-ec", script + "\necho"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        lines = _read_until(shell, '"choices"')
    finally:
        os.killpg(shell.pid, signal.SIGTERM)
        shell.wait(20)
    answer, _ = json.JSONDecoder().raw_decode(lines[-1], lines[-1].index('{"'))
    return answer["choices"][0]["text"], lines


def _read_until(shell, word):
    """The lines of a process up to one with a word."""
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(shell.pid, signal.SIGTERM))
    signal.alarm(TIMEOUT)
    lines = []
    for line in shell.stdout:
        lines.append(line)
        if word in line:
            break
    signal.alarm(0)
    assert lines and word in lines[-1], "".join(lines[-20:])
    return lines
