"""Tests of the commands that the documentation has for a server, and of its tokens per second."""

import json
import os
import subprocess
import sys

import pages
import pytest
from engines import PLUGINS, run_forked
from places import ROOT
from serving import find_port, make_model, run_server

MODEL = "Qwen/Qwen3-0.6B"


@pytest.mark.slow
def test_commands_of_the_page_serve_a_model(tmp_path):
    expected = run_forked(make_model, tmp_path / "model", log=tmp_path / "model.log")
    (text,) = pages.fences(pages.read("docs/how-to/use-with-vllm.md"), "sh")
    install, *commands = text.splitlines()
    assert install.startswith("pip install") and len(commands) == 4
    port = find_port()
    local = f"vllm serve {tmp_path / 'model'} --served-model-name {MODEL} --dtype float32 --port {port}"
    script = "\n".join(commands).replace(f"vllm serve {MODEL}", local).replace(":8000", f":{port}")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VLLM", "KVCACHE_VLLM"))}
    answer, lines = run_server(script, environment)
    assert answer.split() == expected.split()
    assert any("kvcache runs attention on cpu" in line for line in lines)


@pytest.mark.slow
def test_tokens_of_both_backends_are_timed(tmp_path):
    """The stage of scripts/on-gpu that times vLLM, small and emulated."""
    script, result = ROOT / "benchmarks/gpu_suite/served_tokens.py", tmp_path / "result.json"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, PLUGINS])}
    command = [sys.executable, script, "--target", "emulator:sm_90a", "--small", "--json", result]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    turns = json.loads(result.read_text())["turns"]
    assert list(turns) == ["CUSTOM", "TORCH_SDPA"] and all(len(found) == 1 for found in turns.values()), done.stderr
    (ours,), (peer,) = turns.values()
    assert [each["batch"] for each in ours] == [1, 2]
    assert [each["tokens"] for each in ours] == [each["tokens"] for each in peer]
