"""Tests of the wheel's contents, and of an installed wheel."""

import contextlib
import fcntl
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pages
import pytest
from binaries import is_elf, search_paths
from places import BUILD, ROOT

pytestmark = pytest.mark.long

PACKAGE = ROOT / "python/kvcache"
TOOLS = sorted(path.name for path in (BUILD / "bin").iterdir())
COMPILERS = re.compile(r"lib(LLVM|MLIR|mlir_)[^/]*\.so[^/]*$")
"""The libraries of LLVM and MLIR."""

REPORT = """
import json
(kernel,) = kvcache.compile("gpu.module @m { gpu.func @k() kernel { gpu.return } }", "sm_90a").kernels.values()
assert ".target sm_90a" in kernel.ptx
kvcache.jit("func.func @nothing() { return }", target="emulator:sm_90a").call("nothing")
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if ".so" in line}
print(json.dumps([kvcache.__file__, kvcache.__version__, sorted(loaded)]))
"""

# Files that are empty for a command, by its mount namespace.
HIDE = 'for file in $HIDDEN; do mount --bind /dev/null "$file" || exit; done; exec "$@"'
NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-r", "--mount"]


def run(command, **options):
    """The output of a command without the build tree on Python's path."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= options.pop("env", {})
    return subprocess.run(
        list(map(str, command)),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    ).stdout


def make_wheel(folder, *options, **environment):
    command = [ROOT / "scripts/wheel", "--no-build", "--output", folder, *options]
    return Path(run(command, env=environment).strip())


def install(wheel, folder):
    """A new environment with the wheel, and the packages that it needs from here."""
    venv.create(folder)
    python = folder / "bin/python"
    command = [sys.executable, "-I", "-m", "pip", "--python", python]
    run([*command, "install", "--quiet", "--no-deps", "--no-index", wheel])
    packages = Path(run([python, "-I", "-c", PRINT_PACKAGES]).strip())
    (packages / "here.pth").write_text(sysconfig.get_path("purelib"))
    return packages


PRINT_PACKAGES = "import sysconfig; print(sysconfig.get_path('platlib'))"


def use(environment, folder, prefix=(), **options):
    """Runs the README's program and each tool; returns what the report prints."""
    (folder / "examples").mkdir()
    shutil.copy(ROOT / "examples/quickstart.mlir", folder / "examples")
    program = pages.fences(pages.read("README.md"), "python")[0] + REPORT
    options["cwd"] = folder
    for tool in TOOLS:
        run([*prefix, environment / "bin" / tool, "--help"], **options)
    command = [*prefix, environment / "bin/python", "-I", "-c", program]
    return json.loads(run(command, **options).splitlines()[-1])


def check_one_copy(libraries):
    """Two copies of LLVM or MLIR in a process fail in unclear ways."""
    names = [re.split(r"[-.]", Path(path).name)[0] for path in libraries]
    assert {"libLLVM", "libMLIR"} < set(names)
    assert len(names) == len(set(names)), libraries


def tree_state():
    """The times and sizes of the files that ninja checks."""
    folders = (BUILD, BUILD / "bin", BUILD / "lib", BUILD / "python/kvcache")
    files = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    return {
        path: (path.stat().st_mtime_ns, path.stat().st_size)
        for path in files
        if not path.name.startswith("install_manifest")
    }


@contextlib.contextmanager
def locked_tree():
    """Tests that build, and one that compares the tree, take turns in pytest's processes."""
    folder = os.open(BUILD, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@pytest.fixture(scope="module")
def making(tmp_path_factory):
    """A wheel, and the state of the build tree before and after it was made."""
    with locked_tree():
        before = tree_state()
        wheel = make_wheel(tmp_path_factory.mktemp("linked"), "--linked")
        return wheel, before, tree_state()


@pytest.fixture
def linked(making):
    return making[0]


def test_the_wheel_has_the_package_its_libraries_and_the_tools(linked):
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    python = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    libraries = {path.name for path in (BUILD / "lib").glob("libkvcache_*.so")}
    made = {"_formats.py", "_version.py", f"_kvcache{suffix}"}
    package = python | libraries | made | {"_kvcache.pyi", "py.typed"}
    with zipfile.ZipFile(linked) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {f"kvcache/{name}" for name in package} | {
        f"kvcache-{project_version()}.data/scripts/{tool}" for tool in TOOLS
    }


def project_version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(KVCache VERSION ([\d.]+)", text)[1]


def test_metadata(linked):
    info = f"kvcache-{project_version()}.dist-info"
    with zipfile.ZipFile(linked) as archive:
        metadata = HeaderParser().parsestr(archive.read(f"{info}/METADATA").decode())
        license = archive.read(f"{info}/licenses/LICENSE")
        points = archive.read(f"{info}/entry_points.txt").decode()
        files = set(archive.namelist())
    assert metadata["Name"] == "kvcache"
    assert metadata["Version"] == project_version()
    assert metadata["License-Expression"] == "Apache-2.0 WITH LLVM-exception AND BSL-1.0 AND BSD-3-Clause AND MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra" not in line]
    names = sorted(re.match(r"[\w-]+", line)[0] for line in needed)
    assert names == ["apache-tvm-ffi", "ml_dtypes", "numpy"]
    assert license == (ROOT / "LICENSE").read_bytes()
    texts = {f"licenses/{path.name}" for path in (ROOT / "licenses").iterdir()}
    assert set(metadata.get_all("License-File")) == {"LICENSE", *texts}
    assert {f"{info}/licenses/{text}" for text in texts} <= files
    assert "[vllm.general_plugins]\nkvcache = kvcache.vllm:register" in points
    assert "[sglang.srt.plugins]\nkvcache = kvcache.sglang:register" in points


def test_bill_of_materials_lists_code_of_others(linked):
    with zipfile.ZipFile(linked) as archive:
        bill = json.loads(archive.read(f"kvcache-{project_version()}.dist-info/sboms/kvcache.cdx.json"))
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", project_version())
    found = {each["name"]: each for each in bill["components"]}
    llvm = run([BUILD / "bin/kvcache-opt", "--version"])
    assert found.keys() == {"LLVM", "MLIR", "Boost.Context", "nanobind", "robin-map"}
    assert f"LLVM version {found['LLVM']['version']}" in llvm and found["MLIR"]["version"] == found["LLVM"]["version"]
    assert found["nanobind"]["version"] == importlib.metadata.version("nanobind")
    assert re.fullmatch(r"1\.\d+\.\d+", found["Boost.Context"]["version"])
    for name, each in found.items():
        assert each["purl"].endswith(each["version"]) or name == "MLIR"
        license = each["licenses"][0]
        assert license.get("expression", license.get("license", {}).get("id")) in METADATA_LICENSES
        assert (ROOT / "licenses" / f"{'LLVM' if name == 'MLIR' else name.split('.')[0]}.txt").exists()
    (own,) = bill["dependencies"]
    assert sorted(own["dependsOn"]) == sorted(each["bom-ref"] for each in found.values())


METADATA_LICENSES = "Apache-2.0 WITH LLVM-exception", "BSL-1.0", "BSD-3-Clause", "MIT"


def test_sources_have_all_files(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("git lists the files of a checkout only")
    program = f"from scikit_build_core.build import build_sdist; build_sdist({str(tmp_path)!r})"
    run([sys.executable, "-c", program], cwd=ROOT)
    stem = f"kvcache-{project_version()}"
    with tarfile.open(tmp_path / f"{stem}.tar.gz") as archive:
        packed = {name.removeprefix(f"{stem}/") for name in archive.getnames()}
    listed = set(run(["git", "ls-files"], cwd=ROOT).splitlines())
    assert {"CMakeLists.txt", "licenses/LLVM.txt", "cmake/sbom.cdx.json.in"} <= listed
    assert packed >= {name for name in listed if (ROOT / name).is_file()}


@pytest.mark.skipif(not shutil.which("g++"), reason="needs GCC's C++ compiler")
def test_a_compiler_with_other_names_of_types_is_refused(tmp_path):
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    message = " ".join(done.stderr.split())
    assert "GNU names types differently from the compiler that built the MLIR" in message
    assert "CC=clang-22 CXX=clang++-22" in message


def test_only_llvm_is_found_by_its_path(linked, tmp_path):
    with zipfile.ZipFile(linked) as archive:
        archive.extractall(tmp_path)
    binaries = [path for path in tmp_path.rglob("*") if is_elf(path)]
    assert len(binaries) > len(TOOLS)
    folders = {folder for path in binaries for folder in search_paths(path)}
    assert len(folders) == 1
    assert list(Path(folders.pop()).glob("libMLIR.so*"))


def test_making_a_wheel_keeps_the_build_tree(making):
    _, before, after = making
    assert {BUILD / "build.ninja", BUILD / "CMakeCache.txt"} <= before.keys()
    assert after == before


def test_the_linked_wheel_works(linked, tmp_path):
    packages = install(linked, tmp_path / "environment")
    file, version, loaded = use(tmp_path / "environment", tmp_path)
    assert Path(file) == packages / "kvcache/__init__.py"
    assert version == project_version()
    check_one_copy([path for path in loaded if COMPILERS.search(path)])
    ours = {path for path in loaded if "kvcache" in Path(path).name}
    assert {Path(path).parent for path in ours} == {packages / "kvcache"}
    assert any("libkvcache_emulator" in path for path in ours)


@pytest.fixture
def hidden():
    """The files of LLVM and MLIR, separated by blanks, where they can be hidden."""
    (extension,) = (BUILD / "python/kvcache").glob("_kvcache.*.so")
    paths = re.findall(r"=> (\S+)", run(["ldd", extension]))
    hidden = " ".join({os.path.realpath(path) for path in paths if COMPILERS.search(path)})
    command = [*NAMESPACE, "sh", "-c", HIDE, "sh", "true"]
    environment = {**os.environ, "HIDDEN": hidden}
    tried = subprocess.run(command, env=environment, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"mounts are not permitted here: {tried.stderr.strip()}")
    return hidden


@pytest.mark.slow
def test_the_self_contained_wheel_works_without_llvm(tmp_path, hidden):
    wheel = make_wheel(tmp_path, AUDITWHEEL_ZIP_COMPRESSION_LEVEL="0")
    assert "-manylinux_2_" in wheel.name
    packages = install(wheel, tmp_path / "environment")
    prefix = [*NAMESPACE, "sh", "-c", HIDE, "sh"]
    with pytest.raises(subprocess.CalledProcessError):
        run([*prefix, BUILD / "bin/kvcache-reduce", "--version"], env={"HIDDEN": hidden})
    _, _, loaded = use(
        tmp_path / "environment", tmp_path, prefix, env={"HIDDEN": hidden}
    )
    compilers = [path for path in loaded if COMPILERS.search(path)]
    check_one_copy(compilers)
    assert {Path(path).parent for path in compilers} == {packages / "kvcache.libs"}


def build_small_extension():
    with locked_tree():
        run(["cmake", "--build", BUILD, "--target", "_kvcache-small"])
    return BUILD / "wheel-small" / f"_kvcache{sysconfig.get_config_var('EXT_SUFFIX')}"


PROGRAM_OF_COPIES = """
x = np.arange(4, dtype=np.float32)
y = np.zeros_like(x)
kvcache.jit("func.func @f(%x: memref<4xf32, strided<[?]>>, %y: memref<4xf32>) {"
            "memref.copy %x, %y : memref<4xf32, strided<[?]>> to memref<4xf32>\\nreturn }").call("f", x, y)
assert (x == y).all()
"""


@pytest.mark.slow
def test_small_wheel_has_llvm_in_its_extension(tmp_path, hidden):
    extension = build_small_extension()
    exported = run(["nm", "-D", "--defined-only", "--format=posix", extension]).split()
    assert exported[::4] == ["PyInit__kvcache"]
    wheel = make_wheel(tmp_path, "--small")
    assert wheel.stat().st_size < 40e6
    packages = install(wheel, tmp_path / "environment")
    program = pages.fences(pages.read("README.md"), "python")[0] + PROGRAM_OF_COPIES + REPORT
    command = [*NAMESPACE, "sh", "-c", HIDE, "sh", tmp_path / "environment/bin/python", "-I", "-c", program]
    file, _, loaded = json.loads(run(command, env={"HIDDEN": hidden}).splitlines()[-1])
    assert Path(file) == packages / "kvcache/__init__.py"
    names = {Path(path).name.split(".")[0] for path in loaded if COMPILERS.search(path)}
    assert names == {"libmlir_c_runner_utils", "libmlir_float16_utils"}


@pytest.mark.slow
def test_small_extension_links_no_other_targets():
    """LLVM's targets are those of the host and of GPUs."""
    text = build_small_extension().read_bytes()
    assert b"NVPTX DAG->DAG" in text
    assert b"AMDGPU DAG->DAG" not in text and b"RISC-V DAG->DAG" not in text


def test_stable_wheel_is_for_newer_pythons(linked, tmp_path):
    run([sys.executable, ROOT / "scripts/mark_stable_wheel.py", linked, tmp_path])
    (marked,) = tmp_path.glob("*.whl")
    assert marked.name == linked.name.replace(f"-{THIS_PYTHON}-{THIS_PYTHON}-", "-cp312-abi3-")
    pip = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    for version in ("3.12", "3.14"):
        folder = tmp_path / version
        given = ["--target", folder, "--only-binary=:all:", "--platform=linux_x86_64", f"--python-version={version}"]
        run([*pip, *given, marked])
        (facts,) = folder.glob("*.dist-info/WHEEL")
        assert "Tag: cp312-abi3-linux_x86_64" in facts.read_text()
        assert (folder / "kvcache/__init__.py").exists()


THIS_PYTHON = "cp{}{}".format(*sys.version_info)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--output"], "--output needs a value"),
        (["--unlinked"], "unknown option '--unlinked'"),
    ],
)
def test_wrong_options(options, message):
    result = subprocess.run(
        [ROOT / "scripts/wheel", *options], capture_output=True, text=True
    )
    assert result.returncode == 1 and message in result.stderr


def test_a_wheel_needs_a_build_tree(tmp_path):
    project = ROOT / "cmake/wheel-of-build"
    result = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", project, "-B", tmp_path, "-DKVCACHE_BUILD_DIR=/nowhere"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "to be a build tree, got '/nowhere'" in " ".join(result.stderr.split())
