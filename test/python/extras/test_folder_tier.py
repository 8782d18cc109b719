"""Tests of managers whose pages are in a folder, over restarts and kills."""

import random
import re
import signal
import subprocess
import sys
import time

from places import ROOT
from store_machine import PROMPTS, start

def test_prompts_outlive_the_process(tmp_path):
    machine = start(tmp_path)
    for prompt in PROMPTS:
        machine.serve(prompt[:15])
    machine = start(tmp_path)
    for prompt in PROMPTS:
        assert machine.serve(prompt[:15]) == 14


def test_damaged_files_are_computed_again(tmp_path):
    start(tmp_path).serve(PROMPTS[0][:15])
    files = [*tmp_path.glob("??/*")]
    assert len(files) == 7
    data = bytearray(files[3].read_bytes())
    data[-1] ^= 1
    files[3].write_bytes(data)
    files[5].unlink()
    # A damaged page is found when the pages before it are there again.
    found = [start(tmp_path).serve(PROMPTS[0][:15]) for _ in range(3)]
    assert found[0] < 14 and sorted(found) == found and found[2] == 14


def test_killed_processes_show_no_wrong_page(tmp_path):
    def begin(seed):
        command = [sys.executable, ROOT / "test/python/support/store_machine.py", tmp_path, str(seed)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    processes, read = [begin(seed) for seed in range(2)], 0
    try:
        for seed in range(2, 8):
            for process in processes:
                assert process.stdout.readline(), process.stderr.read()
            time.sleep(random.Random(seed).uniform(0.2, 0.5))
            victim = processes.pop(0)
            victim.send_signal(signal.SIGKILL)
            output, errors = victim.communicate()
            assert not errors
            read += max([int(number) for number in re.findall(r"from store (\d+)\n", output)], default=0)
            processes.append(begin(seed))
    finally:
        for process in processes:
            process.kill()
            assert not process.communicate()[1]
    assert read
    machine = start(tmp_path, 10_000)
    for prompt in PROMPTS:
        machine.serve(prompt[:14])


def test_how_to_keeps_pages():
    page = (ROOT / "docs/how-to/keep-pages-across-restarts.md").read_text()
    names = {}
    for program in re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(program, names)
    assert names["prefetch"].poll()
