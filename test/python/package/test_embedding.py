"""Tests that the how-to for embedders quotes its example."""

import subprocess
from xml.etree import ElementTree

import pages
import pytest
from places import OPT

PAGE = pages.read("docs/how-to/embed-in-a-compiler.md")
EMBED = pages.ROOT / "examples" / "embed"


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options)


@pytest.mark.parametrize("language", ["cpp", "cmake"])
def test_code_is_quoted_from_the_example(language):
    source = {line.strip() for path in EMBED.iterdir() for line in path.read_text().splitlines()}
    for quoted in pages.fences(PAGE, language):
        assert {line.strip() for line in quoted.splitlines()} - source == set()


def test_cmake_finds_the_same_package():
    test = pages.read("test/Embed/serve.test")
    for part in ("-S %examples/embed", "-DKVCache_DIR=", "/lib/cmake/kvcache", "--lower-serve --kvcache-to-ptx=chip=sm_90a"):
        assert part in test
        assert part.replace("%", "") in PAGE


def list_passes(pipeline, options):
    """The names of a pipeline's passes, in order."""
    dump = run([OPT, "-", f"--{pipeline}={options}", "--dump-pass-pipeline"], input="").stderr
    return [line.strip().split("{")[0].rstrip(",") for line in dump.splitlines()]


@pytest.mark.parametrize("name", ["ptx", "emulator", "cpu"])
def test_picture_has_the_passes_in_their_order(name):
    picture = ElementTree.parse(pages.ROOT / "docs/images/pipelines.svg")
    drawn = [
        box.get("data-pass") for box in picture.iter() if name in box.get("data-pipelines", "").split()
    ]
    passes = iter(list_passes(f"kvcache-to-{name}", "" if name == "cpu" else "chip=sm_90a"))
    assert drawn
    assert [box for box in drawn if box not in passes] == []  # advances, so that order counts


def test_canonicalizing_first_merges_grid_and_block():
    source = pages.ROOT / "examples" / "quickstart.mlir"
    done = run([OPT, source, "--canonicalize", "--kvcache-to-ptx=chip=sm_90a", "--emit-ptx"])
    assert ".maxntid 1, 1, 1" in done.stdout
    assert "warning: makes a kernel with blocks of one thread" in done.stderr
