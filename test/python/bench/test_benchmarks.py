"""The comparison of compilers: facts of kernels, verdicts, and reports.

No other compiler is needed: contenders are fakes, except nvcc where it is installed.
"""

import ast
import dataclasses
import json
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
import linear
import plot
import pytest
import verdict
from compiled import needs_tools
from contenders import CUDA, IN_PROCESS, NVRTC, OURS, PROCESS, TRITON
from kvcache.compilation import sass, toolchain
from measure import Result
from places import ROOT
from works import CHIPS, WORKS

import kvcache


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


@pytest.mark.long
@needs_tools
def test_facts_of_a_kernel_are_those_of_ptxas():
    kernel = kvcache.compile(SMALL, target="sm_90a").kernels["copy"]
    found = facts.gather(kernel.ptx, "sm_90a", 512)
    assert found.code.instructions == kernel.sass_instructions
    assert found.registers == kernel.registers
    assert (found.spill_bytes, found.stack_bytes, found.static_shared, found.dynamic_shared) == (0, 0, 0, 512)
    assert found.code.accesses == {"global load": {4: 1}, "global store": {4: 1}}
    assert found.code.bytes_in_flight == 4


@needs_tools
@pytest.mark.parametrize("names", [[], ["first", "second"]])
def test_facts_of_several_kernels_are_an_error(names):
    entries = "".join(f".visible .entry {name}() {{ ret; }}\n" for name in names)
    with pytest.raises(ValueError, match=f"expects one kernel in the module, got {', '.join(names) or 'none'}"):
        facts.gather(f".version 8.6\n.target sm_90a\n.address_size 64\n{entries}", "sm_90a", 0)


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "blocks"),
    [(32, 128, 0, 16), (128, 32, 0, 16), (33, 64, 0, 25), (32, 128, 100 << 10, 2)],
)
def test_blocks_of_a_multiprocessor(registers, threads, shared, blocks):
    assert facts.count_blocks(registers, threads, shared) == blocks


# --- Works -----------------------------------------------------------------------------------------------------------


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
def test_series_has_as_many_ops_as_it_says(ops, most, kernels):
    text = linear.source(ops, most)
    assert len(re.findall(r"^\s+(?:%\w+ = )?kvcache\.", text, re.MULTILINE)) == ops
    assert len(kvcache.compile(text).kernels) == kernels
    moves = re.findall(r"^  move\(.*first \+ (\d+)\);$", linear.cuda_source(ops), re.MULTILINE)
    assert [int(move) for move in moves] == list(range(linear.source(ops, ops).count("kvcache.load")))


@pytest.mark.parametrize(("ops", "most", "each"), [(15, 10, 10), (15, 20, 15), (4, 10, 4)])
def test_series_with_a_part_of_a_kernel_is_an_error(ops, most, each):
    with pytest.raises(ValueError, match=f"from 6 on, got {ops} in kernels of {each}"):
        linear.source(ops, most)


class SlowNvcc:
    """Takes too long for more than 600 lines."""

    def __init__(self):
        self.lines = []

    def compile_file(self, source, chip, seconds):
        self.lines.append(len(source.read_text().splitlines()))
        if self.lines[-1] > 600:
            raise contenders.TookTooLongError(f"takes more than {seconds} s")
        return ""


def test_series_ends_where_it_takes_too_long(monkeypatch, tmp_path):
    monkeypatch.setattr(linear, "_time", lambda chip, most, ops: float(ops) if ops < 1000 or most == 10 else 61e3)
    nvcc = SlowNvcc()
    points = linear.measure("sm_90a", runs=2, nvcc=nvcc)
    found = {shape: [len(p.milliseconds) for p in points if p.shape == shape] for shape in (linear.PEER, "one kernel")}
    assert found == {linear.PEER: [2, 2, 2, 0], "one kernel": [2, 2, 2]}
    assert len(nvcc.lines) == 7  # once what takes too long
    (judged,) = verdict.judge([], points)
    assert [figure.met for figure in judged.figures] == [True, False, None]  # whatever nvcc takes
    assert judged.figures[1].text.endswith("which take 61 s: more were not tried")
    assert judged.figures[2].text.endswith("; 10,000 take over 60 s")
    assert "over 60,000" in linear.tabulate(points).render(markdown=True)
    texts = [e.text for e in ElementTree.parse(plot.draw([], points).save(tmp_path / "plot.svg")).iter()]
    assert "over 6.00 ms" in texts


# --- Judging ---------------------------------------------------------------------------------------------------------

CODE = sass.MachineCode(
    100, None, None, {"global load": {4: 1, 16: 4}, "global store": {16: 4}}, {}, bytes_in_flight=64
)
FACTS = facts.Facts(120, CODE, 32, 0, 0, 0, 0)


def about(**changes):
    """The facts with some changes of itself or of its code."""
    code = {name: value for name, value in changes.items() if hasattr(CODE, name)}
    rest = {name: value for name, value in changes.items() if name not in code}
    return dataclasses.replace(FACTS, code=dataclasses.replace(CODE, **code), **rest)


def result(family, found=FACTS, times=(10.0, 10.0), kind=PROCESS, work="gather", note=""):
    figures = {"family": family, "kind": kind} | ({} if note else {"facts": found})
    return Result(work, "sm_90a", f"{family} {kind}", "", note, [] if note else list(times), figures)


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
    assert judged["every work compiles"].met is judged["no spills"].met is True
    assert judge(about(spill_bytes=8))["no spills"].met is False


def test_a_work_that_does_not_compile_is_a_miss_with_its_reason():
    judged, *others = verdict.judge([result(OURS, note="no such op"), result(CUDA)], [])
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


@pytest.mark.parametrize(
    ("times", "growth"),
    [
        ({100: (10.0, 10.0, 10.0), 1000: (100.0, 100.0)}, 1),
        ({1000: (9.0,), 10000: ()}, None),
        ({10: (1.0,), 1000: (100.0,)}, 1),
    ],
)
def test_growth_is_that_of_the_rounds_that_all_sizes_have(times, growth):
    assert linear.growth([linear.Point("one kernel", ops, found) for ops, found in times.items()]) == growth


# --- Measuring and reporting -----------------------------------------------------------------------------------------


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


def test_contenders_that_fail_are_tried_once(no_ptxas):
    broken = Fake("broken", CUDA, error=contenders.CannotCompileError("no such chip"))
    died = Fake("command", OURS, error=contenders.CrashedError("ended by signal 11"))
    library, peer = Fake("library", OURS, IN_PROCESS), Fake("peer", NVRTC, IN_PROCESS)
    results = compare.measure(WORKS["gather"], "sm_90a", [broken, died, library, peer], runs=2)
    assert [len(fake.turns) for fake in (broken, died, library, peer)] == [1, 1, 0, 3]
    assert [(r.note, len(r.milliseconds)) for r in results] == [
        ("no such chip", 0),
        ("ended by signal 11", 0),
        ("not tried in this process, as another one died", 0),
        ("", 2),
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
def test_errors_are_printed_in_a_line(message, summary):
    assert contenders.summarize(message) == summary


@pytest.mark.long
def test_a_process_that_fails_dies_or_hangs_says_so():
    python = [sys.executable, "-c"]
    assert contenders._run(*python, "import sys; open(sys.argv[1], 'w').write('ptx')") == "ptx"
    with pytest.raises(contenders.CannotCompileError, match="^ValueError: no$"):
        contenders._run(*python, "raise ValueError('no')")
    with pytest.raises(contenders.CrashedError, match="ended by signal 9"):
        contenders._run(*python, "import os; os.kill(os.getpid(), 9)")
    start = time.perf_counter()
    with pytest.raises(contenders.TookTooLongError, match="takes more than 1 s"):
        contenders._run(*python, "import time; time.sleep(600)", seconds=1)
    assert time.perf_counter() - start < 300


def test_missing_compilers_and_sources_are_left_out_with_advice(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("CUDA_HOME", "/nonexistent")
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    assert [contender.family for contender in compare.find_contenders()] == [OURS, OURS]
    printed = capsys.readouterr().err
    assert "nvcc is left out: nvcc was not found: install the CUDA 13 toolkit, or set CUDA_HOME" in printed
    assert re.search(r"NVRTC is left out: .*: run scripts/bench, or pip install -r benchmarks/requirements\.txt", printed)
    assert "Triton is left out" in printed
    absent = dataclasses.replace(WORKS["gather"], source="nowhere")
    with pytest.raises(contenders.CannotCompileError, match="there is no benchmarks/kernels/nowhere.mlir"):
        contenders.KVCacheCompile().compile(absent, "sm_90a")


def fake_run(monkeypatch, *arguments):
    """Runs the program with fakes that all can, except one."""
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
    assert "gather sm_80, gather sm_90a: triton: no fp8" in printed.out

    written = json.loads((tmp_path / "results.json").read_text())
    assert {"Python", "ours", "nvcc", "ptxas", "nvdisasm"} <= written["software"].keys()
    assert len(written["results"]) == 2 * 4
    first = written["results"][0]
    assert (first["work"], first["case"], first["contender"]) == ("gather", "sm_80", "ours")
    assert len(first["milliseconds"]) == 2
    assert first["figures"]["facts"]["code"]["accesses"]["global load"] == {"4": 1, "16": 4}
    assert [point["ops"] for point in written["linear"]] == [10, 20] * 2
    assert {"target", "met", "figures"} == written["verdicts"][0].keys()

    report = (tmp_path / "report.md").read_text()
    assert "### Verdict" in report and "- **met**: no spills" in report
    texts = [e.text for e in ElementTree.parse(tmp_path / "plot.svg").iter() if e.tag.endswith("text")]
    assert "100 of 100" in texts and "10 ops" in texts


def test_record_has_the_tables_of_the_report(no_ptxas, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "RECORD", tmp_path / "compile.json")
    monkeypatch.setattr(bench, "PICTURE", tmp_path / "compile-time.svg")
    options = "--works=gather,sparse_rows_gather4", "--runs=1", f"--out={tmp_path / 'out'}", "--record", "--markdown"
    fake_run(monkeypatch, *options)
    assert capsys.readouterr().out == (tmp_path / "out/report.md").read_text()
    record = json.loads((tmp_path / "compile.json").read_text())
    assert record["command"].startswith("scripts/bench") and record["runs"].startswith("1 of each contender")
    assert record["tables"].keys() == {"process", "in-process", "machine-code"}
    places = [row[:2] for row in record["tables"]["process"]["rows"]]
    assert places == [*(["gather", chip] for chip in CHIPS), ["sparse_rows_gather4", "sm_100a"]]
    assert (tmp_path / "compile-time.svg").read_bytes() == (tmp_path / "out/plot.svg").read_bytes()


def test_without_ptxas_there_is_no_comparison(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXAS", "/nonexistent/ptxas")
    with pytest.raises(SystemExit, match="error: PTXAS is '/nonexistent/ptxas', which is not a program"):
        fake_run(monkeypatch, f"--out={tmp_path}")


def test_help_needs_no_build():
    command = [sys.executable, "-E", str(ROOT / "benchmarks/bench.py"), "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "scripts/bench --works gather,decode" in text
    assert all(name in text for name in WORKS)


@pytest.mark.slow
@needs_tools
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("work", ["gather", "sparse_rows_gather4"])
def test_nvcc_compiles_a_peer(work):
    (found,) = compare.measure(WORKS[work], "sm_100a", [contenders.Nvcc()], runs=1)
    code = found.figures["facts"].code
    assert found.note == "" and 16 in code.accesses["global load"]
    assert (code.main_loop is None) == (work == "gather")
