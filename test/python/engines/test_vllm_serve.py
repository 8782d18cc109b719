"""Tests of the commands that the documentation has for a server."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from engine_models import generate_tokens, save, save_tokenizer
from engines import PLUGINS, run_forked

MODEL = "Qwen/Qwen3-0.6B"
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


@pytest.mark.slow
def test_commands_of_the_page_serve_a_model(tmp_path):
    assert shutil.which("curl"), "the commands of the page need curl"
    expected = run_forked(make_model, tmp_path / "model", log=tmp_path / "model.log")
    (text,) = pages.fences(pages.read("docs/how-to/use-with-vllm.md"), "sh")
    install, *commands = text.splitlines()
    assert install.startswith("pip install") and len(commands) == 4
    port = find_port()
    local = f"vllm serve {tmp_path / 'model'} --served-model-name {MODEL} --dtype float32 --port {port}"
    script = "\n".join([*commands, "echo"]).replace(f"vllm serve {MODEL}", local).replace(":8000", f":{port}")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VLLM", "KVCACHE_VLLM"))}
    environment["PYTHONPATH"] = f"{PLUGINS}:{environment['PYTHONPATH']}"
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    with open(tmp_path / "log", "w") as log:
        shell = subprocess.Popen(
            ["bash", "-ec", script], stdout=subprocess.PIPE, stderr=log,
            text=True, env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            lines = read_until(shell, '"choices"')
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait(20)
    answer, _ = json.JSONDecoder().raw_decode(lines[-1], lines[-1].index('{"'))
    assert answer["choices"][0]["text"].split() == expected.split()
    assert any("kvcache runs attention on cpu" in line for line in lines)


def read_until(shell, word):
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
