"""Tests of the documentation's site: pages, links and examples, and instructions of ops on chips."""

import html
import posixpath
import re
import subprocess
import sys
import tomllib
from urllib.parse import unquote, urlsplit

import pytest
from packaging.specifiers import SpecifierSet
from places import ROOT

import kvcache
from kvcache._native import extension

sys.path.insert(0, str(ROOT / "docs" / "site"))

import chips
import dialect_reference
import formats
import page_examples
import python_reference
import versions

OPS = {op.name: op for family in dialect_reference.families() for op in family.ops}
MNEMONIC = re.compile(r'def \w+ : KVCache_\w*Op<\s*"(\w+)"')


def becomes(name, chip):
    """The number of each instruction of the example of an op."""
    found = chips.outcome(OPS[name], chip)
    assert not found.error
    return dict(found.instructions)


# --- Reference --------------------------------------------------------------------


def test_the_reference_has_every_op():
    tables = "".join(path.read_text() for path in page_examples.TABLES)
    assert OPS.keys() == set(MNEMONIC.findall(tables))


def test_attention_is_described_in_500_words():
    text = (ROOT / "include/kvcache/IR/AttentionOps.td").read_text()
    description = re.search(r"let description = \[\{(.*?)    Constraints:", text, re.DOTALL)[1]
    assert len(description.split()) <= 500


def test_every_family_has_a_place_in_the_nav():
    assert sorted(dialect_reference.FAMILIES) == sorted(f.name for f in dialect_reference.families())


def test_pipelines_equal_the_compiler_s():
    found = {name: dict(options) for name, _, options in dialect_reference.pipelines()}
    assert found.keys() == {
        "kvcache-expand-copies", "kvcache-kernels-to-emulator", "kvcache-to-cpu", "kvcache-to-emulator", "kvcache-to-ptx"
    }
    assert {"chip=<string>", "format=<string>", "host"} <= found["kvcache-to-ptx"].keys()


def test_every_name_of_the_package_has_one_task():
    names = [name for task in python_reference.TASKS for name in task.names]
    frameworks = next(task for task in python_reference.TASKS if task.page == "frameworks").names
    assert len(set(names)) == len(names)
    assert set(names) - set(frameworks) == set(kvcache.__all__) - {"__version__"}


def test_index_of_python_has_a_summary_of_each_name():
    index = python_reference.pages()["reference/python/index.md"]
    for name in kvcache.__all__:
        assert name == "__version__" or f"`{name}`" in index
    assert re.search(r"\| \[`compile`\].* \| Compiles", index)


def test_formats_are_those_of_the_verifier():
    known = {element: {scale: sizes for scale, _, sizes in formats.find(element)} for element in formats.ELEMENTS}
    assert known["bf16"] == {"": (0,)} and known["f4E2M1FN"] == {"f8E8M0FNU": (32,), "f8E4M3FN": (16,)}
    assert known["i4"].keys() == {"f32", "f16", "bf16"} and known["i8"].keys() == {"", *formats.SCALES}


def test_versions_are_accepted_and_drivers_known():
    """pip accepts what is tested, and each chip has the oldest driver that compiles its PTX."""
    accepted = versions.find_accepted(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"])
    for package, tested in versions.find_pinned().items():
        assert tested and all(version in SpecifierSet(accepted[package]) for version in tested)
    chips_of = {chip: row for row in versions.list_chips()[1:] for chip in row[0].split(", ")}
    assert chips_of["sm_80"][1:] == ("8.0", "12.0", "525") and chips_of["sm_100a"][1:] == ("8.8", "12.9", "575")
    assert versions.find_releases() == [*versions._PYTHONS]
    assert chips_of.keys() == set(extension().chips())


def test_page_of_variables_has_those_that_code_reads():
    code = [ROOT / folder for folder in ("lib", "emulator/lib", "python/kvcache")]
    files = [path for folder in code for path in folder.rglob("*") if path.suffix in (".cpp", ".h", ".py")]
    read = {name for path in files for name in re.findall(r'"(KVCACHE_[A-Z_]+)"', path.read_text())}
    shown = set(re.findall(r"`(KVCACHE_[A-Z_]+)`", (ROOT / "docs/reference/environment.md").read_text()))
    assert shown == read


# --- Chips ------------------------------------------------------------------------


def test_every_chip_is_in_one_class():
    found = [chip for chip_class in chips.classes() for chip in chip_class.chips]
    assert sorted(found) == sorted(kvcache.chips())
    assert kvcache._native.extension().chip_features("sm_99") == []


@pytest.mark.parametrize("chip_class", chips.classes(), ids=lambda c: c.title)
def test_chips_of_a_class_make_the_same(chip_class):
    for name in "dequantize", "async_gather_tile":
        outcomes = {chips.outcome(OPS[name], chip) for chip in chip_class.chips}
        assert len(outcomes) == 1


HOPPER_OPS = "mma", "mma_wait", "fragment_mma", "fragment_wait", "schedule_fence"


@pytest.mark.parametrize(
    ("chip", "error"),
    [("sm_121a", "requires sm_90a for wgmma, but the target is sm_121a"), ("sm_90a", "")],
)
def test_matrix_products_compile_on_hopper_only(chip, error):
    for name in HOPPER_OPS:
        found = chips.outcome(OPS[name], chip).error
        op = "mma" if name.startswith("mma") else "fragment_mma"
        assert found == (error and f"'kvcache.{op}' op {error}")


TMEM_OPS = "tmem_alloc", "tmem_view", "tmem_mma", "tmem_commit", "tmem_load", "tmem_store"


@pytest.mark.parametrize(
    ("chip", "error"), [("sm_90a", "for tensor memory, but the target is sm_90a"), ("sm_103a", "")]
)
def test_products_in_tensor_memory_compile_on_chips_that_have_it(chip, error):
    for name in TMEM_OPS:
        found = chips.outcome(OPS[name], chip).error
        assert found.endswith(error) and bool(found) == bool(error)


@pytest.mark.long
def test_every_other_op_compiles_on_the_newest_chip():
    found = {
        op.name: chips.outcome_in(family, op, "sm_121a").error
        for family in dialect_reference.families()
        for op in family.ops
        if op.name not in (*HOPPER_OPS, *TMEM_OPS)
    }
    assert found == {name: "" for name in OPS if name not in (*HOPPER_OPS, *TMEM_OPS)}


@pytest.mark.parametrize(
    ("chip", "copy", "count"),
    [
        ("sm_80", r"cp\.async\.cg\.shared\.global", 1),
        ("sm_90a", r"cp\.async\.bulk\.tensor\.2d\..*\.tile\.mbarrier.*", 64),
        ("sm_100", r"cp\.async\.bulk\.tensor\.2d\..*::gather4\.mbarrier.*", 16),
        ("sm_120a", r"cp\.async\.bulk\.tensor\.2d\..*::gather4\.mbarrier.*", 16),
    ],
)
def test_gather_becomes_the_copy_of_the_chip(chip, copy, count):
    found = becomes("async_gather_tile", chip)
    assert [n for name, n in found.items() if re.fullmatch(copy, name)] == [count]


@pytest.mark.parametrize(("chip", "is_cvt"), [("sm_80", False), ("sm_89", True), ("sm_90", True)])
def test_fp8_is_converted_by_an_instruction_from_sm_89_on(chip, is_cvt):
    assert ("cvt.rn.f16x2.e4m3x2" in becomes("dequantize", chip)) == is_cvt


def test_checks_print_and_trap():
    calls = "vprintf", "kvcache_record_failure", "__assertfail"
    assert becomes("check", "sm_80") == {f"call {name}": 1 for name in calls}


@pytest.mark.parametrize(
    ("name", "chip", "error"),
    [
        ("tma_load", "sm_89", "requires sm_90 or newer for TMA, but the target is sm_89"),
        ("tma_gather4", "sm_90a", "requires sm_100 or newer for gather4, but the target is sm_90a"),
    ],
)
def test_missing_feature_of_a_chip_is_an_error(name, chip, error):
    assert error in chips.outcome(OPS[name], chip).error


# --- Examples ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "line", "error"),
    [
        ("```mlir\nfunc.func @f() {\n```", 3, "expected"),
        ("```mlir\n#kv = #kvcache.params<num_heads = 0, head_size = 1>\n```", 3, "num_heads"),
        ("```python\nx = 1\nassert x == 2\n```", 5, "AssertionError"),
        ("```python\nx = (\n```", 4, "SyntaxError"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```", 7, "what is printed is\n1\n"),
        ("```sh\nls\nkvcache-opt none.mlir | cat\n```", 5, "none.mlir"),
        ("```sh\nx=1; kvcache-opt --version\n```\n\n```sh\nkvcache-opt --version\n[ $x = 1 ]\n[ $x = 2 ]\n```", 10, "fails"),
    ],
)
def test_a_broken_example_is_an_error_with_page_and_line(tmp_path, example, line, error):
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{example}\n")
    command = [sys.executable, ROOT / "docs/site/page_examples.py", page]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith(f"{page}:{line}: ") and error in result.stderr


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("105 loads of sm_90a", True),
        ("150 loads of sm_90a", False),
        ("100 loads of sm_80", False),
        ("100 stores", False),
    ],
)
def test_numbers_that_are_printed_may_differ_a_bit(printed, expected):
    assert page_examples.agree("100 loads of sm_90a", printed) == expected


def test_command_prints_its_help():
    result = subprocess.run([ROOT / "scripts/docs", "--help"], capture_output=True, text=True)
    assert result.returncode == 0 and "Example:" in result.stdout
    result = subprocess.run([ROOT / "scripts/docs", "--nothing"], capture_output=True, text=True)
    assert result.returncode == 1 and "unknown option '--nothing'" in result.stderr


# --- The site ---------------------------------------------------------------------

LINK = re.compile(r'\b(?:href|src)="?([^"\s>]+)')
ANCHOR = re.compile(r'\b(?:id|name)="?([^"\s>]+)')


def list_links(page):
    return [html.unescape(link) for link in LINK.findall(page.read_text())]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="scripts/docs installs it")
    folder = tmp_path_factory.mktemp("site")
    from click.testing import CliRunner
    from mkdocs.__main__ import cli

    # In this process, which has compiled some of the examples.
    command = ["build", "--strict", "--config-file", ROOT / "mkdocs.yml", "--site-dir", folder]
    result = CliRunner().invoke(cli, list(map(str, command)))
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.slow
def test_the_site_is_complete_and_works_without_network(site):
    pages = sorted({*site.rglob("*.html")} - {site / "404.html"})
    names = {page.relative_to(site).as_posix() for page in pages}
    assert {"index.html", "how-to/copy-tiles.html", "explanation/tile-copies.html", "contributing.html", "changelog.html"} <= names
    assert {posixpath.splitext(c.page)[0] + ".html" for c in chips.classes()} <= names

    anchors = {page: set(ANCHOR.findall(page.read_text())) for page in pages}
    broken = []
    for page in pages:
        for link in list_links(page):
            parts = urlsplit(link)
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            is_anchor = parts.fragment and target.suffix == ".html"
            if parts.scheme:
                continue
            if not target.exists() or is_anchor and unquote(parts.fragment) not in anchors[target]:
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []

    for page in pages:
        loaded = re.findall(r"<(?:script|link|img)\b[^>]*\b(?:src|href)=\"?(http[^\"\s>]*)", page.read_text())
        assert loaded == []

    for family in dialect_reference.families():
        page = site / family.page.replace(".md", ".html")
        assert {op.name for op in family.ops} <= anchors[page]
    for chip_class in chips.classes():
        text = (site / chip_class.page.replace(".md", ".html")).read_text()
        assert [name for name in OPS if f"#{name}\"" not in text and f"#{name}>" not in text] == []

    # Opened as files, pages search by a script in place of a worker, and pictures open alone.
    first = (site / "tutorial/first-kernel.html").read_text()
    assert (site / "search/search_index.js").read_text().startswith("var __index = {")
    assert "../site/iframe-worker.js" in first
    assert re.search(r'<a class="?picture"? href="?\.\./images/overview\.svg"?>', first)

    python = {path.stem: anchors[path] for path in (site / "reference/python").glob("*.html")}
    for task in python_reference.TASKS:
        assert {f"kvcache.{name}" for name in task.names} <= python[task.page]
    assert '<span class="nv">%keys</span>' in (site / "index.html").read_text()
