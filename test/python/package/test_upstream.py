"""Tests of the reports of upstream's defects; lit runs their reproducers."""

import re
import subprocess

import pytest
from compiled import needs_ptxas
from kvcache.compilation import toolchain
from places import ROOT

REPORTS = sorted(path for path in (ROOT / "test/Upstream").iterdir() if path.suffix != ".cfg")
PAGE = (ROOT / "docs/explanation/upstream-defects.md").read_text()
HEADER = (ROOT / "include/kvcache/Support/UpstreamDefects.h").read_text()


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
def test_report_is_short_and_listed(report):
    text = report.read_text()
    assert len(text.splitlines()) <= 30 and "kvcache" not in text
    assert f"../../test/Upstream/{report.name}" in PAGE


def test_workarounds_name_reports_and_are_used():
    constants = re.findall(r"Report: (\S+)\.\ninline constexpr bool (\w+)", HEADER)
    assert len(constants) == HEADER.count("inline constexpr")
    sources = "\n".join(path.read_text() for path in (ROOT / "lib").rglob("*.cpp"))
    for report, constant in constants:
        assert ROOT / "test/Upstream" / report in REPORTS and f"upstream::{constant}" in sources


@needs_ptxas
def test_kernel_of_the_report_for_a_gpu_assembles(tmp_path):
    text = (ROOT / "test/Upstream/box-outside-tensor.cu").read_text()
    source = tmp_path / "load.ptx"
    source.write_text(re.search(r'R"\((.*?)\)"', text, re.DOTALL)[1])
    command = [toolchain.find_tool("ptxas"), "-arch=sm_90", source, "-o", tmp_path / "load.cubin"]
    subprocess.run(command, check=True, timeout=60)
