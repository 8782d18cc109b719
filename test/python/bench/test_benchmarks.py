"""The benchmarks: what they know of kernels, how they judge results and report them.

No other compiler is needed: contenders are fakes, but for nvcc where it is installed.
"""

import ast
import dataclasses
import json
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import bench
import compare
import contenders
import facts
import kvcache
import linear
import measure
import plot
import pytest
import report
import sass
import verdict
from contenders import CUDA, IN_PROCESS, NVRTC, OURS, PROCESS, TRITON
from kvcache.compilation import toolchain
from places import ROOT
from report import Table
from works import CHIPS, WORKS


def has_ptxas():
    try:
        return bool(toolchain.find_tool("ptxas") and toolchain.find_tool("nvdisasm"))
    except kvcache.ToolchainError:
        return False


needs_ptxas = pytest.mark.skipif(not has_ptxas(), reason="needs ptxas and nvdisasm")


PTX = """
.version 8.0
.target sm_80
.address_size 64
// add.s32 in a comment;
.visible .entry kernel(.param .u64 .ptr .global .align 16 kernel_param_0)
.maxntid 256
{
	.reg .pred %p<2>;
	.loc	1 5 0
	ld.param.b64 %rd1, [kernel_param_0];
	{.reg .b16 a, b; mov.b32 {a, b}, %r1; cvt.f32.f16 %f1, a;}
$L__BB0_1:
	@%p1 bra $L__BB0_1; /* not here; */
	ld.global.nc.v4.b32
		{%r1, %r2, %r3, %r4}, [%rd1];
	ret;
}
"""


def test_ptx_instructions_are_counted_wherever_lines_end():
    assert facts.count_ptx_instructions(PTX) == 6


SMALL = """
gpu.module @kernels {
  gpu.func @copy(%from: memref<64xf32>, %to: memref<64xf32>)
      kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %i = gpu.thread_id x
    %value = memref.load %from[%i] : memref<64xf32>
    memref.store %value, %to[%i] : memref<64xf32>
    gpu.return
  }
}
"""


@needs_ptxas
def test_facts_of_a_kernel_are_those_of_ptxas():
    kernel = kvcache.compile(SMALL, target="sm_90a").kernels["copy"]
    found = facts.gather(kernel.ptx, "sm_90a", 512)
    assert found.code.instructions == kernel.sass_instructions
    assert found.registers == kernel.registers
    assert (found.spill_bytes, found.stack_bytes, found.static_shared, found.dynamic_shared) == (0, 0, 0, 512)
    assert found.code.accesses == {"global load": {4: 1}, "global store": {4: 1}}
    assert found.code.bytes_in_flight == 4


@needs_ptxas
def test_facts_are_those_of_one_kernel():
    head = ".version 8.6\n.target sm_90a\n.address_size 64\n"
    with pytest.raises(ValueError, match="expects one kernel in the module, got none"):
        facts.gather(head, "sm_90a", 0)
    two = "".join(f".visible .entry {name}() {{ ret; }}\n" for name in ("first", "second"))
    with pytest.raises(ValueError, match="expects one kernel in the module, got first, second"):
        facts.gather(head + two, "sm_90a", 0)


# --- Works --------------------------------------------------------------------


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
def test_each_work_has_its_peers(work):
    assert re.search(rf"\b{work.name}\(const __grid_constant__", work.cuda.read_text())
    tree = ast.parse((ROOT / "benchmarks/peers/triton_kernels.py").read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert (work.name in functions) == (work.name != "gather_dynamic")


@pytest.mark.parametrize("source", sorted({work.source for work in WORKS.values()}))
def test_each_work_has_one_kernel_for_every_chip(source):
    path = ROOT / f"benchmarks/kernels/{source}.mlir"
    assert re.search(rf"func\.func @{source}\b", path.read_text())
    kernels = kvcache.compile(path, target=CHIPS).kernels
    assert len(kernels) == len(CHIPS)
    assert {chip for _, chip in kernels} == set(CHIPS)


@pytest.mark.parametrize(("ops", "most", "kernels"), [(10, 10, 1), (30, 10, 3), (30, 10000, 1)])
def test_the_series_has_as_many_ops_as_it_says(ops, most, kernels):
    text = linear.source(ops, most)
    assert len(re.findall(r"^\s+(?:%\w+ = )?kvcache\.", text, re.MULTILINE)) == ops
    assert len(kvcache.compile(text).kernels) == kernels


@pytest.mark.parametrize(("ops", "most", "each"), [(15, 10, 10), (15, 20, 15), (4, 10, 4)])
def test_the_series_has_whole_kernels(ops, most, each):
    with pytest.raises(ValueError, match=f"from 6 on, got {ops} in kernels of {each}"):
        linear.source(ops, most)


@pytest.mark.parametrize("ops", [10, 100])
def test_the_series_in_cuda_has_the_same_loads_and_stores(ops):
    moves = re.findall(r"^  move\(.*first \+ (\d+)\);$", linear.cuda_source(ops), re.MULTILINE)
    assert [int(move) for move in moves] == list(range(linear.source(ops, ops).count("kvcache.load")))


def test_the_series_ends_where_it_takes_too_long(monkeypatch):
    seconds = {10: 1, 100: 10, 1000: linear.MOST_SECONDS + 1}
    monkeypatch.setattr(linear, "_time", lambda chip, most, ops: 1e3 * seconds[ops])
    monkeypatch.setattr(linear, "SHAPES", {"one kernel": 10000})
    points = linear.measure("sm_90a", runs=2)
    assert [(point.ops, len(point.milliseconds)) for point in points] == [(10, 2), (100, 2), (1000, 2)]
    (judged,) = verdict.judge([], points)
    assert judged.met is False
    assert judged.figures[0].text == "0.79 to 1,000 ops (0.79 from 100 on), which take 61 s: more were not tried"


class SlowNvcc:
    """Takes too long for more than 600 lines."""

    def __init__(self):
        self.lines = []

    def compile_file(self, source, chip, seconds):
        self.lines.append(len(source.read_text().splitlines()))
        if self.lines[-1] > 600:
            raise contenders.TookTooLongError(f"takes more than {seconds} s")
        return ""


def test_the_series_stops_nvcc_where_it_takes_too_long(monkeypatch, tmp_path):
    monkeypatch.setattr(linear, "_time", lambda chip, most, ops: float(ops))
    nvcc = SlowNvcc()
    points = linear.measure("sm_90a", runs=2, nvcc=nvcc)
    found = {point.ops: len(point.milliseconds) for point in points if point.shape == linear.PEER}
    assert found == {10: 2, 100: 2, 1000: 2, 10000: 0}
    assert len(nvcc.lines) == 7  # once what takes too long
    (judged,) = verdict.judge([], points)
    assert judged.met is True  # whatever nvcc takes
    assert judged.figures[-1].met is None and judged.figures[-1].text.endswith("; 10,000 take over 60 s")
    assert "over 60,000" in report.render({}, [], points, [judged], markdown=True)
    texts = [e.text for e in ElementTree.parse(plot.draw([], points).save(tmp_path / "plot.svg")).iter()]
    assert "over 6.00 ms" in texts


def test_a_compiler_that_takes_too_long_is_stopped():
    start = time.perf_counter()
    with pytest.raises(contenders.TookTooLongError, match="takes more than 1 s"):
        contenders._run(sys.executable, "-c", "import time; time.sleep(600)", seconds=1)
    assert time.perf_counter() - start < 300


# --- Judging ------------------------------------------------------------------

CODE = sass.MachineCode(100, None, None, {"global load": {4: 1, 16: 4}, "global store": {16: 4}}, {}, 64)
FACTS = facts.Facts(120, CODE, 32, 0, 0, 0, 0)


def about(**changes):
    """FACTS with other values, of itself or of its code."""
    code = {name: value for name, value in changes.items() if hasattr(CODE, name)}
    rest = {name: value for name, value in changes.items() if name not in code}
    return dataclasses.replace(FACTS, code=dataclasses.replace(CODE, **code), **rest)


def result(family, facts=FACTS, times=(10.0, 10.0), kind=PROCESS, work="gather", cannot=""):
    return measure.Result(work, "sm_90a", f"{family} {kind}", family, kind, () if cannot else times, facts, cannot)


def judge(ours, theirs=None, work="gather"):
    """By target, whether it is met and the figure."""
    results = [result(OURS, ours, work=work)]
    if theirs:
        results.append(result(CUDA, theirs, work=work))
    return {judged.target.split(":")[0]: judged for judged in verdict.judge(results, [])}


WHOLE = "SASS instructions of the whole kernel"
MAIN, INNER = "SASS instructions of the main loop", "SASS instructions of the inner loop"
WIDTHS = "global memory in no narrower accesses than the peer's (in brackets)"
FLIGHT = "no fewer bytes of global loads in flight than the peer's"


@pytest.mark.parametrize(
    ("work", "count", "met"),
    [("gather", 75, True), ("gather", 76, False), ("decode", 100, True), ("decode", 101, False)],
)
def test_gathers_shall_have_three_quarters_of_the_code(work, count, met):
    judged = judge(about(instructions=count), FACTS, work)[WHOLE]
    assert judged.met is met
    assert judged.figures[0].text == f"{count}/100 = {count / 100:.2f}"


@pytest.mark.parametrize(
    ("ours", "theirs", "met", "text"),
    [
        (sass.Loop(10, 16, 0), sass.Loop(10, 16, 0), True, "10/10 = 1.00"),
        (sass.Loop(11, 16, 0), sass.Loop(10, 16, 0), False, "11/10 = 1.10"),
        (sass.Loop(15, 32, 0), sass.Loop(10, 0, 16), True, "15/10 = 1.50 for 32/16 B"),
        (sass.Loop(20, 32, 0), sass.Loop(10, 0, 16), False, "20/10 = 2.00 for 32/16 B"),
        (None, sass.Loop(10, 16, 0), None, "no loop"),
        (sass.Loop(10, 16, 0), None, None, "10, the peer has none"),
    ],
)
@pytest.mark.parametrize(("target", "field"), [(MAIN, "main_loop"), (INNER, "inner_loop")])
def test_a_loop_may_be_longer_where_it_does_more(target, field, ours, theirs, met, text):
    judged = judge(about(**{field: ours}), about(**{field: theirs}))[target]
    assert (judged.met, judged.figures[0].text) == (met, text)


def test_spills_are_not_wanted_even_without_a_peer():
    assert judge(FACTS)["no spills"].met is True
    assert judge(about(spill_bytes=8))["no spills"].met is False


@pytest.mark.parametrize(
    ("accesses", "bulk", "met"),
    [
        ({"global load": {4: 9, 16: 1}, "global store": {16: 1}}, {}, True),
        ({"global load": {16: 1, 32: 1}, "global store": {32: 1}}, {}, True),
        ({"global load": {2: 1, 16: 1}, "global store": {16: 1}}, {}, False),
        ({"global load": {4: 1, 8: 2}, "global store": {16: 1}}, {}, False),
        ({"global load": {4: 1}, "global store": {16: 1}}, {"UTMALDG.2D": 1}, True),
        ({"global load": {4: 1}, "global to shared": {16: 1}, "global store": {16: 1}}, {}, True),
        ({"global load": {4: 1, 16: 1}, "global store": {8: 2}}, {}, False),
    ],
)
def test_no_access_is_narrower_than_the_peers(accesses, bulk, met):
    assert judge(about(accesses=accesses, bulk_copies=bulk), FACTS)[WIDTHS].met is met


def test_bytes_in_flight_are_at_least_the_peers():
    assert judge(about(bytes_in_flight=64), FACTS)[FLIGHT].met is True
    assert judge(about(bytes_in_flight=63), FACTS)[FLIGHT].met is False
    assert judge(about(bytes_in_flight=4, bulk_copies={"UTMALDG.2D": 1}), FACTS)[FLIGHT].met is None


def test_where_there_is_no_peer_there_is_nothing_to_compare():
    judged = judge(FACTS)
    assert [judged[target].met for target in (WHOLE, MAIN, INNER, WIDTHS, FLIGHT)] == [None] * 5
    assert judged[WHOLE].figures[0].text == "100, no peer"
    assert judged["every work compiles"].met is True


def test_a_work_that_does_not_compile_is_a_miss_with_its_reason():
    judged, *others = verdict.judge([result(OURS, None, cannot="no such op"), result(CUDA)], [])
    assert judged.target == "every work compiles"
    assert (judged.met, judged.figures[0].text) == (False, "no such op")
    assert {other.met for other in others} == {None}


@pytest.mark.parametrize(("kind", "family", "most"), [(PROCESS, CUDA, 4.0), (IN_PROCESS, NVRTC, 2.0)])
def test_times_are_compared_round_by_round(kind, family, most):
    theirs = (10.0, 10.0 * most, 1000.0 * most)
    for ours, met in (((99.0, 10.0, 1000.0), True), ((99.0, 10.1, 1010.0), False)):
        results = [result(OURS, times=ours, kind=kind), result(family, times=theirs, kind=kind)]
        judged = [v for v in verdict.judge(results, []) if v.target.startswith(f"time to PTX, {kind}:")]
        assert [v.met for v in judged] == [met]


@pytest.mark.parametrize(("last", "met"), [(10000.0, True), (15800.0, True), (15900.0, False)])
def test_growth_is_that_from_a_hundred_ops_on(last, met):
    times = {10: (99.0,), 100: (100.0, 300.0, 50.0), 1000: (9.0, 9.0, 9.0), 10000: (last, 3 * last, 9e9)}
    points = [linear.Point("one kernel", ops, found) for ops, found in times.items()]
    assert [judged.met for judged in verdict.judge([], points)] == [met]


def test_growth_is_that_of_the_rounds_that_all_sizes_have():
    times = {100: (10.0, 10.0, 10.0), 1000: (100.0, 100.0)}
    assert linear.growth([linear.Point("one kernel", ops, found) for ops, found in times.items()]) == 1


def test_growth_wants_two_sizes():
    assert linear.growth([linear.Point("one kernel", 1000, (9.0,)), linear.Point("one kernel", 10000, ())]) is None
    assert linear.growth([linear.Point("one kernel", 10, (1.0,)), linear.Point("one kernel", 1000, (100.0,))]) == 1


# --- Measuring and reporting --------------------------------------------------


class Fake(contenders.Contender):
    """A compiler that notes its turns."""

    version = "1.0"

    def __init__(self, name, family, kind=PROCESS, error=None):
        self.name, self.family, self.kind, self.error = name, family, kind, error
        self.turns = []

    def compile(self, work, chip):
        self.turns.append((work.name, chip))
        if self.error:
            raise self.error
        return contenders.Module(self.name)


@pytest.fixture
def no_ptxas(monkeypatch):
    """Facts without a run of ptxas."""
    monkeypatch.setattr(facts, "gather", lambda ptx, chip, dynamic_shared: FACTS)
    monkeypatch.setattr(toolchain, "find_tool", lambda name: Path(sys.executable))


def test_contenders_take_turns_after_a_warm_up(no_ptxas):
    turns = []
    fakes = [Fake("a", OURS), Fake("b", CUDA)]
    for fake in fakes:
        fake.turns = turns
        fake.compile = lambda work, chip, fake=fake: turns.append(fake.name) or contenders.Module("")
    results = measure.measure(WORKS["gather"], "sm_90a", fakes, runs=3)
    assert turns == ["a", "b"] * 4
    assert [len(r.milliseconds) for r in results] == [3, 3]


def test_those_that_cannot_compile_are_tried_once(no_ptxas):
    broken = Fake("broken", CUDA, error=contenders.CannotCompileError("no such chip"))
    results = measure.measure(WORKS["gather"], "sm_90a", [Fake("ours", OURS), broken], runs=2)
    assert len(broken.turns) == 1
    assert [(r.cannot, r.milliseconds != ()) for r in results] == [("", True), ("no such chip", False)]


def test_what_died_in_a_process_is_not_tried_in_ours(no_ptxas):
    died = Fake("command", OURS, error=contenders.CrashedError("ended by signal 11"))
    library, peer = Fake("library", OURS, IN_PROCESS), Fake("peer", NVRTC, IN_PROCESS)
    results = measure.measure(WORKS["gather"], "sm_90a", [died, library, peer], runs=1)
    assert library.turns == [] and len(peer.turns) == 2
    assert [r.cannot for r in results] == [
        "ended by signal 11",
        "not tried in this process, as another one died",
        "",
    ]


@pytest.mark.parametrize(
    ("message", "summary"),
    [
        ("a.mlir:3:5: error: 'kvcache.load' op expects more\nnote: see", "'kvcache.load' op expects more"),
        ("ptxas /tmp/x.ptx, line 144; error   : Feature 'cvt'", "Feature 'cvt'"),
        ("Traceback\n  raise\nValueError: not supported\n", "ValueError: not supported"),
        ("", "failed"),
    ],
)
def test_errors_are_told_in_a_line(message, summary):
    assert contenders.summarize(message) == summary


def test_a_process_that_fails_or_dies_says_so():
    python = [sys.executable, "-c"]
    assert contenders._run(*python, "import sys; open(sys.argv[1], 'w').write('ptx')") == "ptx"
    with pytest.raises(contenders.CannotCompileError, match="^ValueError: no$"):
        contenders._run(*python, "raise ValueError('no')")
    with pytest.raises(contenders.CrashedError, match="ended by signal 9"):
        contenders._run(*python, "import os; os.kill(os.getpid(), 9)")


def test_missing_compilers_are_left_out_with_advice(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("CUDA_HOME", "/nonexistent")
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    assert [contender.family for contender in compare.find_contenders()] == [OURS, OURS]
    told = capsys.readouterr().err
    assert "nvcc is left out: nvcc was not found: install the CUDA 13 toolkit, or set CUDA_HOME" in told
    assert re.search(r"NVRTC is left out: .*: run scripts/bench, or pip install -r benchmarks/requirements\.txt", told)
    assert "Triton is left out" in told


def test_a_source_that_is_not_there_is_told():
    absent = dataclasses.replace(WORKS["gather"], source="nowhere")
    with pytest.raises(contenders.CannotCompileError, match="there is no benchmarks/kernels/nowhere.mlir"):
        contenders.KVCacheCompile().compile(absent, "sm_90a")


def fake_run(monkeypatch, *arguments):
    """Runs the program with fakes that all can, but for one."""
    error = contenders.CannotCompileError("no fp8")
    fakes = [Fake("ours", OURS), Fake("nvcc", CUDA), Fake("lib", OURS, IN_PROCESS), Fake("triton", TRITON, error=error)]
    monkeypatch.setattr(compare, "find_contenders", lambda: fakes)
    monkeypatch.setattr(linear, "SIZES", (10, 20))
    return bench.main(arguments)


def test_a_run_writes_figures_a_report_and_a_picture(no_ptxas, monkeypatch, tmp_path, capsys):
    assert fake_run(monkeypatch, "--works=gather,linear", "--chips=sm_80,sm_90a", "--runs=2", f"--out={tmp_path}") == 0
    printed = capsys.readouterr()
    assert "bench: gather, sm_80" in printed.err and f"bench: written: {tmp_path}" in printed.err
    assert "Machine code, by one ptxas" in printed.out and "met: no spills" in printed.out
    assert "gather, sm_80, sm_90a: triton: no fp8" in printed.out

    written = json.loads((tmp_path / "results.json").read_text())
    assert {"date", "commit", "command", "CPU", "ours", "nvcc", "ptxas"} <= written["provenance"].keys()
    assert len(written["results"]) == 2 * 4
    first = written["results"][0]
    assert (first["work"], first["chip"], first["contender"]) == ("gather", "sm_80", "ours")
    assert len(first["milliseconds"]) == 2
    assert first["facts"]["code"]["accesses"]["global load"] == {"4": 1, "16": 4}
    assert [point["ops"] for point in written["linear"]] == [10, 20] * 2
    assert {"target", "met", "figures"} == written["verdicts"][0].keys()

    report = (tmp_path / "report.md").read_text()
    assert "### Verdict" in report and "- **met**: no spills" in report
    texts = [e.text for e in ElementTree.parse(tmp_path / "plot.svg").iter() if e.tag.endswith("text")]
    assert "100 of 100" in texts and "10 ops" in texts


def test_markdown_is_what_the_report_has(no_ptxas, monkeypatch, tmp_path, capsys):
    fake_run(monkeypatch, "--works=decode", "--chips=sm_90a", "--runs=1", f"--out={tmp_path}", "--markdown")
    assert capsys.readouterr().out == (tmp_path / "report.md").read_text()


def test_record_has_the_figures_of_the_report(no_ptxas, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "RECORD", tmp_path / "compile.json")
    monkeypatch.setattr(bench, "PICTURE", tmp_path / "compile-time.svg")
    fake_run(monkeypatch, "--works=gather", "--chips=sm_90a", "--runs=1", f"--out={tmp_path / 'out'}", "--record")
    record, report = json.loads((tmp_path / "compile.json").read_text()), (tmp_path / "out/report.md").read_text()
    assert record["command"].startswith("scripts/bench") and record["software"]["Python"] == platform.python_version()
    assert record["tables"].keys() == {"process", "in-process", "machine-code", "growth"}
    for table in record["tables"].values():
        for row in table["rows"]:
            assert len(row) == len(table["columns"])
            for value, column in zip(row, table["columns"]):
                numbers = value if isinstance(value, list) else [value]
                assert value is None or column.get("format", "{}").format(*numbers) in report
    assert (tmp_path / "compile-time.svg").read_bytes() == (tmp_path / "out/plot.svg").read_bytes()


def test_a_work_is_measured_on_its_chips_only(no_ptxas, monkeypatch, tmp_path):
    fake_run(monkeypatch, "--works=sparse_rows_gather4", "--runs=1", f"--out={tmp_path}")
    written = json.loads((tmp_path / "results.json").read_text())
    assert {entry["chip"] for entry in written["results"]} == {"sm_100a"}


def test_tables_are_aligned():
    table = Table(["work", "chip", "ms"], [["gather", "sm_80", "9"], ["decode", "sm_100a", "1000"]])
    assert table.render(markdown=False) == "work    chip       ms\ngather  sm_80       9\ndecode  sm_100a  1000"
    assert table.render(markdown=True).splitlines() == [
        "| work   | chip    |   ms |",
        "| --- | --- | --: |",
        "| gather | sm_80   |    9 |",
        "| decode | sm_100a | 1000 |",
    ]


def test_without_ptxas_there_is_no_comparison(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXAS", "/nonexistent/ptxas")
    with pytest.raises(SystemExit, match="error: PTXAS is '/nonexistent/ptxas', which is not a program"):
        fake_run(monkeypatch, f"--out={tmp_path}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--works=scatter"], "unknown name 'scatter'; known are gather, gather_dynamic"),
        (["--chips=sm_70"], "unknown chip 'sm_70'; known are sm_80"),
        (["--runs=0"], "expects a positive number, got '0'"),
        (["--runs=two"], "expects a positive number, got 'two'"),
    ],
)
def test_wrong_arguments_are_told(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_needs_no_build():
    command = [sys.executable, "-E", str(ROOT / "benchmarks/bench.py"), "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "scripts/bench --works gather,decode" in text
    assert all(name in text for name in WORKS)


@pytest.mark.slow
@needs_ptxas
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("work", ["gather", "sparse_rows_gather4"])
def test_nvcc_compiles_a_peer(work):
    (found,) = measure.measure(WORKS[work], "sm_100a", [contenders.Nvcc()], runs=1)
    assert found.cannot == "" and found.facts.spill_bytes == 0
    assert 16 in found.facts.code.accesses["global load"]
    assert (found.facts.code.main_loop is None) == (work == "gather")
