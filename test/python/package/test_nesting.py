"""Tests that every tool rejects sources that nest too deep, with the place."""

import subprocess

import pytest
from places import OPT

import kvcache


def chain(first, definition, last):
    """Aliases, each of which is defined by the one before it."""
    return lambda levels: "\n".join(
        [first, *(definition.format(i + 1, i) for i in range(levels)), last.format(levels)]
    )


def nest(before, opening, inner, closing, after=""):
    return lambda levels: before + opening * levels + inner + closing * levels + after


# Sources on which MLIR's parser, printer and verifier recur, by the number of levels.
SOURCES = {
    "regions": nest("", "module {", "", "}"),
    "bodies": nest("func.func @f(%c: i1) {", "scf.if %c {", "", "}", " return }"),
    "types": nest("func.func private @f(", "tuple<", "i32", ">", ")"),
    "attributes": nest("module attributes {x.a = ", "[", "", "]", "} {}"),
    "locations": nest("module {} loc(", 'callsite("a" at ', '"b"', ")", ")"),
    "aliases of types": chain("!t0 = i32", "!t{} = tuple<!t{}>", "func.func private @f(!t{})"),
    "aliases of locations": chain(
        '#t0 = loc("a")', '#t{} = loc(callsite("a" at #t{}))', "module {{}} loc(#t{})"
    ),
    "signs": nest("#m = affine_map<(d0) -> (", "- ", "d0)>", ""),
    "sums": nest("#m = affine_map<(d0) -> (", "d0 +\n", "d0)>", ""),
    "quotients": nest("#m = affine_map<(d0) -> (d0", " floordiv 2", ")>", ""),
}
CHAINS = [kind for kind in SOURCES if kind.startswith("aliases")]


def run_tool(source, *options):
    return subprocess.run(
        [OPT, "-", *options], input=source, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("kind", SOURCES)
def test_a_deep_source_is_an_error_with_its_place(kind):
    # A chain of aliases overflows later: its printing recurses, not its parsing.
    run = run_tool(SOURCES[kind](100_000 if kind in CHAINS else 20_000))
    assert run.returncode == 1, run.stderr[-300:]
    place, _, message = run.stderr.partition(" error: ")
    assert place.startswith("<stdin>:")
    assert message.startswith("the source is nested more than 1000 deep")
    assert run.stderr.count("error:") == 1


@pytest.mark.parametrize("kind", SOURCES)
def test_as_many_levels_as_are_allowed_pass_all_of_mlir(kind):
    options = "--verify-roundtrip --mlir-print-debuginfo --canonicalize --cse --inline".split()
    # An alias of a location adds two brackets to a level, and other sources begin in some.
    run = run_tool(SOURCES[kind](490 if kind in CHAINS else 990), *options)
    assert run.returncode == 0, run.stderr[-300:]


def test_deep_source_after_a_split_marker_is_found():
    shallow = "// Not }}}}\nmodule attributes {x.a = \"((((\"} {\n" * 600 + "}" * 600
    split = f"{shallow}\n// -----\n{shallow}\n// -----\n"
    assert run_tool(split, "--split-input-file").returncode == 0
    run = run_tool(split + SOURCES["regions"](2000), "--split-input-file")
    assert run.returncode == 1
    assert "nested more than 1000 deep" in run.stderr


def test_operators_in_lists_and_bodies_do_not_nest():
    numbers = ", ".join(["-1"] * 3000)
    constants = "".join(f"  %c{i} = arith.constant -1 : i32\n" for i in range(3000))
    source = f"module attributes {{x.a = [{numbers}]}} {{ func.func @f() {{\n{constants} return }} }}"
    assert run_tool(source).returncode == 0


def test_bytecode_is_not_text(tmp_path):
    path = tmp_path / "brackets.mlirbc"
    text = f'module attributes {{x.a = "{"(" * 2000}"}} {{}}'
    assert run_tool(text, "--emit-bytecode", "-o", path).returncode == 0
    run = subprocess.run([OPT, path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_chain_of_aliases_is_an_error_in_python():
    with pytest.raises(kvcache.CompileError, match="nested more than 1000 deep"):
        kvcache.compile(SOURCES["aliases of types"](100_000), target="sm_90")


def test_a_nested_type_of_scales_is_one_error():
    levels = 20
    run = run_tool("func.func private @f(" + "!kvcache.scales<" * levels + "i32" + ">" * levels + ")")
    assert run.stderr.count("error:") == 1
    assert "expects a view of a paged or continuous cache, got 'i32'" in run.stderr
