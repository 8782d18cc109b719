#!/usr/bin/env python3
"""Times vLLM with our attention and with another one, on a Llama of random weights.

Each turn is a process of its own with one backend, and turns alternate, so that other work on the machine slows both.
The time that is left is shared equally by the turns that are left. A turn generates tokens of each batch twice, and the second time counts. Tokens are greedy; rounding may make them differ
from some token on, where two logits are close.

examples:
  python benchmarks/gpu_suite/served_tokens.py --json served-tokens.json
  python benchmarks/gpu_suite/served_tokens.py --target emulator:sm_90a --small
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from command import Command  # noqa: E402
from gpu_suite.llama import Workload, choose_device, count_equal, make_config  # noqa: E402
from measure import say  # noqa: E402
from provenance import list_versions, read_gpu  # noqa: E402
from record import Record  # noqa: E402
from report import Table  # noqa: E402


WORK = Workload(rounds=2)
SMALL = Workload(layers=2, hidden=128, heads=(4, 2), batches=(1, 2), prompt=20, new=3, rounds=1)
# vLLM's own attention, and on the platform for the CPU the reference in PyTorch.
OURS = "CUSTOM"
PEERS = {"cuda": "TRITON_ATTN", "cpu": "TORCH_SDPA"}


def choose_compilation() -> dict[str, Any]:
    """The compilation of vLLM's configuration: CUDA graphs alone, if operators of PyTorch replace the compiled ones."""
    found = find_spec("vllm._C_stable_libtorch")
    if found is None or not str(found.origin).endswith(".py"):
        return {}
    return {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "custom_ops": ["none"]}


def generate(work: Workload, backend: str, target: str, folder: str) -> list[dict[str, Any]]:
    """The seconds and the tokens of each batch, with one backend."""
    os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    from vllm import LLM, SamplingParams

    on_gpu = choose_device(target) == "cuda"
    compilation = {"compilation_config": choose_compilation()} if on_gpu else {}
    engine = LLM(
        model=folder, load_format="dummy", skip_tokenizer_init=True, attention_backend=backend, block_size=16, seed=0,
        dtype="bfloat16" if on_gpu else "float32", enforce_eager=not on_gpu, max_model_len=work.prompt + work.new,
        max_num_seqs=max(work.batches), kv_cache_memory_bytes=1 << (32 if on_gpu else 22), enable_prefix_caching=False,
        additional_config={"kvcache": {"target": target}}, **compilation,
    )  # fmt: skip
    sampling = SamplingParams(temperature=0, max_tokens=work.new, detokenize=False, ignore_eos=True)
    found = []
    for batch in work.batches:
        prompts = [{"prompt_token_ids": [2 + (7 * i + 3 * row) % 990 for i in range(work.prompt)]} for row in range(batch)]
        for _ in range(2):
            start = time.perf_counter()
            outputs = engine.generate(prompts, sampling, use_tqdm=False)
            seconds = time.perf_counter() - start
        tokens = [list(output.outputs[0].token_ids) for output in outputs]
        found.append({"batch": batch, "seconds": seconds, "tokens": tokens})
    return found


def run_turn(options: argparse.Namespace, backend: str, folder: str, seconds: float) -> list[dict[str, Any]] | None:
    """Generates in a process of its own, in at most some seconds; None if it fails."""
    result = Path(folder, f"{backend}.json")
    result.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--target", options.target, "--turn", backend, "--folder", folder]
    small = ["--small"] if options.small else []
    platform = {} if choose_device(options.target) == "cuda" else {"KVCACHE_VLLM_PLATFORM": "cpu"}
    say(f"{backend}: at most {seconds:.0f} s")
    try:
        subprocess.run([*command, *small], env=os.environ | platform, timeout=seconds, check=True, stdout=sys.stderr)
        return json.loads(result.read_text())
    except (OSError, subprocess.SubprocessError) as error:
        say(f"{backend}: {error}")
        return None


def measure(options: argparse.Namespace) -> Record:
    work = SMALL if options.small else WORK
    record = Record("python benchmarks/gpu_suite/served_tokens.py", driver=read_gpu().get("driver"))
    record.software = list_versions("torch", "vllm")
    backends = OURS, PEERS[choose_device(options.target)]
    turns: dict[str, list[list[dict[str, Any]]]] = {backend: [] for backend in backends}
    deadline = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        # vLLM makes the weights.
        make_config(work, architectures=["LlamaForCausalLM"]).save_pretrained(folder)
        order = backends * work.rounds
        for number, backend in enumerate(order):
            seconds = (deadline - time.monotonic()) / (len(order) - number)
            if seconds > 0 and (found := run_turn(options, backend, folder, seconds)):
                turns[backend].append(found)
    table = Table("batch", "attention", ("tokens/s", "{:.1f}"), "turns", "first tokens that are equal")
    for number, batch in enumerate(work.batches):
        equal = count_equal(*(found[0][number]["tokens"] for found in turns.values() if found))
        for backend, found in turns.items():
            if found:
                seconds = statistics.median(turn[number]["seconds"] for turn in found)
                table.add(batch, backend, batch * work.new / seconds, len(found), f"{equal} of {work.new}")
    record.tables = {"served tokens": table}
    record.details = {"turns": turns}
    if missing := [backend for backend, found in turns.items() if not found]:
        print(record.render(False))
        raise ValueError(f"expects tokens of each backend, got none of {', '.join(missing)}")
    return record


def main(arguments: list[str] | None = None) -> int:
    command = Command("served_tokens.py", __doc__)
    command.add("--target", default="cuda", help="as in kvcache.jit (default: %(default)s)")
    command.add("--seconds", type=float, default=180, help="for all (default: %(default)s)")
    command.add("--small", action="store_true", help="a small model and few tokens")
    command.add("--turn", metavar="BACKEND", help=argparse.SUPPRESS)
    command.add("--folder", help=argparse.SUPPRESS)
    given = sys.argv[1:] if arguments is None else arguments
    if "--turn" in given:
        options = command.parse(given)
        work = SMALL if options.small else WORK
        found = generate(work, options.turn, options.target, options.folder)
        Path(options.folder, f"{options.turn}.json").write_text(json.dumps(found))
        return 0
    return command.run(measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
