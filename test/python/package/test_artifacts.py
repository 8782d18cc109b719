"""Tests of artifacts: compiled modules in files, also damaged ones."""

import functools
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import kvcache
import pytest
from compiled import GATHER, needs_nvdisasm, needs_ptxas
from hypothesis import given
from hypothesis import strategies as st
from kvcache.compilation import toolchain
from programs import examples


@pytest.fixture
def saved(tmp_path):
    module = kvcache.compile(GATHER, ["sm_90a", "sm_100a"])
    module.save(tmp_path / "kernels.kvcache")
    return module, tmp_path / "kernels.kvcache"


def assert_same(module, other):
    assert list(module.kernels) == list(other.kernels)
    assert repr(module) == repr(other)
    for key, kernel in module.kernels.items():
        assert other.kernels[key].ptx == kernel.ptx
        assert other.kernels[key].parameters == kernel.parameters
        assert other.kernels[key].block_size == kernel.block_size


def test_artifacts(saved):
    module, path = saved
    assert_same(module, kvcache.load(path))
    assert_same(module, kvcache.load(str(path)))


def test_artifacts_are_reproducible(saved, tmp_path):
    _, path = saved
    kvcache.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@needs_ptxas
@needs_nvdisasm
def test_artifacts_contain_launch_facts(tmp_path, monkeypatch):
    module = kvcache.compile(GATHER, format="cubin")
    count = module.kernels["gather"].sass_instructions
    module.save(tmp_path / "a")
    monkeypatch.setattr(toolchain, "_run", None)
    loaded = kvcache.load(tmp_path / "a")
    assert loaded.format == "cubin"
    for kernel in loaded.kernels.values():
        assert kernel.cubin == module.kernels[kernel.name].cubin
        assert kernel.registers == module.kernels[kernel.name].registers
    assert loaded.kernels["gather"].sass_instructions == count


def test_artifacts_load_without_the_compiler(saved, tmp_path):
    """The package without its extension, as on a machine without LLVM."""
    module, path = saved
    package = tmp_path / "site" / "kvcache"
    binaries = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(kvcache.__file__).parent, package, ignore=binaries)
    program = f"""
import kvcache
print(repr(kvcache.load({str(path)!r})))
try:
    kvcache.compile("module {{}}")
except ImportError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(package.parent)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert repr(module) in run.stdout
    assert "the compiler of the kvcache package can't be loaded" in run.stdout


def test_load_rejects_files_that_are_not_artifacts(saved, tmp_path):
    _, path = saved
    data = path.read_bytes()
    wrong = tmp_path / "wrong"
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 0xFF
    for contents in (
        b"",
        b"garbage",
        data[:-30],
        data[: len(data) // 2],
        bytes(damaged),
    ):
        wrong.write_bytes(contents)
        with pytest.raises(kvcache.ArtifactError, match=f"{wrong}: not an artifact"):
            kvcache.load(wrong)
    with pytest.raises(FileNotFoundError):
        kvcache.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"version": 2},
            "has version 2 of the format, written by kvcache .* reads version 1",
        ),
        ({"format": "other"}, "not an artifact of kvcache"),
        ({"binaries": None}, "not an artifact"),
        ({"binaries": [{"module": "m"}]}, "not an artifact"),
        (None, "not an artifact"),
    ],
)
def test_manifests_that_are_wrong(tmp_path, saved, change, message):
    _, path = saved
    wrong = tmp_path / "wrong"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(wrong, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "manifest.json":
                data = json.dumps(change and {**json.loads(data), **change})
            target.writestr(name, data)
    with pytest.raises(kvcache.ArtifactError, match=message):
        kvcache.load(wrong)


@functools.cache
def get_artifact():
    """The bytes of an artifact with all optional contents."""
    module = kvcache.compile(GATHER, ["sm_90a", "sm_100a"], opt_level=0)
    for binary in module.binaries:
        binary.__dict__["cubin"] = b"code"
        names = [kernel.name for kernel in binary.kernels]
        resources = toolchain.Resources(1, 2, 3, 4)
        binary.__dict__["resources"] = dict.fromkeys(names, resources)
        binary.__dict__["instructions"] = dict.fromkeys(names, 5)
    with tempfile.TemporaryDirectory() as folder:
        module.save(Path(folder, "artifact"))
        return Path(folder, "artifact").read_bytes()


def check_damaged(contents):
    """Checks that an artifact is rejected, or its module is usable."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "damaged")
        path.write_bytes(contents)
        try:
            module = kvcache.load(path)
        except kvcache.ArtifactError as error:
            assert str(error).startswith(f"{path}: ")
            return
        for kernel in module.kernels.values():
            if kernel.binary.known("resources"):
                numbers = kernel.registers, kernel.spill_bytes, kernel.stack_bytes
                assert {type(number) for number in numbers} == {int}
            if kernel.binary.known("instructions"):
                assert isinstance(kernel.sass_instructions, int)
            assert isinstance(kernel.binary.known("cubin"), bytes | None)
            parameters = [p.name + p.type for p in kernel.parameters]
            assert isinstance(kernel.chip + kernel.module + "".join(parameters), str)
        module.save(path)
        assert repr(kvcache.load(path)) == repr(module)


@pytest.mark.long
@given(st.data())
@examples(400)
def test_artifacts_with_other_bytes(data):
    contents = bytearray(get_artifact())
    for _ in range(data.draw(st.integers(1, 4))):
        contents[data.draw(st.integers(0, len(contents) - 1))] ^= data.draw(
            st.integers(1, 255)
        )
    end = data.draw(st.sampled_from((len(contents), 0)))
    check_damaged(bytes(contents[: end or data.draw(st.integers(0, len(contents)))]))


def find_places(value):
    """All (container, key) pairs in a value of JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from find_places(inner)


NONSENSE = (None, True, -1, 1.5, 2**70, "", "x", "\ud800", [], [1], {}, {"x": 1}, [[[]]])


@pytest.mark.long
@given(st.data())
@examples(400)
def test_artifacts_with_other_manifests(data):
    source = zipfile.ZipFile(io.BytesIO(get_artifact()))
    manifest = json.loads(source.read("manifest.json"))
    container, key = data.draw(st.sampled_from(list(find_places(manifest))))
    if data.draw(st.booleans()):
        container[key] = data.draw(st.sampled_from(NONSENSE))
    else:
        del container[key]
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as target:
        for name in source.namelist():
            is_manifest = name == "manifest.json"
            target.writestr(name, json.dumps(manifest) if is_manifest else source.read(name))
    check_damaged(output.getvalue())


@pytest.mark.parametrize("path", [None, 3, True, 1.5, [], object()])
def test_paths_of_artifacts(path):
    with pytest.raises(TypeError, match="expects 'path' to be a path, got"):
        kvcache.load(path)
    with pytest.raises(TypeError, match="expects 'path' to be a path, got"):
        kvcache.compile("").save(path)
