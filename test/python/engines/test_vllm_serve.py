"""Tests of the commands that the documentation has for a server."""

import os

import pages
import pytest
from engines import run_forked
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
