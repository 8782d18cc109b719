"""Tests of the commands that the documentation has for a server of SGLang."""

import os

import pages
import pytest
from serving import find_port, make_model, run_server
from sglang_engine import ENVIRONMENT, OPERATORS, run_forked

MODEL = "Qwen/Qwen3-0.6B"


@pytest.mark.slow
def test_commands_of_the_page_serve_a_model(tmp_path):
    expected = run_forked(make_model, tmp_path / "model", log=tmp_path / "model.log")
    (text,) = pages.fences(pages.read("docs/how-to/use-with-sglang.md"), "sh")
    install, *commands = text.splitlines()
    assert install.startswith("pip install") and len(commands) == 3
    port = find_port()
    local = (
        f"--model-path {tmp_path / 'model'} --served-model-name {MODEL} --dtype float32 --port {port} "
        "--device cpu --max-total-tokens 512"
    )
    script = "\n".join(commands).replace(f"--model-path {MODEL}", local).replace(":30000", f":{port}")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KVCACHE_SGLANG")}
    answer, lines = run_server(script, environment | ENVIRONMENT, OPERATORS)
    assert answer.split() == expected.split()
    assert any("kvcache runs attention on cpu" in line for line in lines)
