"""The lit test suite: one folder per layer, files named for the behaviour."""

import os
import shlex
import shutil

import lit.formats

config.name = "kvcache"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ll", ".mlir", ".test"]
config.excludes = ["CMakeLists.txt", "fuzz", "python", "Inputs", "lit.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.kvcache_build_dir, "test")

venv = os.path.dirname(config.python)
config.environment["PATH"] = os.pathsep.join(
    [
        os.path.join(config.kvcache_build_dir, "bin"),
        config.llvm_tools_dir,
        venv,
        os.environ["PATH"],
    ]
)
if config.asan_runtime:
    # Also for programs that are built without it and load our libraries. What
    # those have not freed at their end is not ours. LLVM gives threads stacks for
    # signals, and AddressSanitizer would free them.
    config.environment["LD_PRELOAD"] = config.asan_runtime
    config.environment["ASAN_OPTIONS"] = "detect_leaks=0:use_sigaltstack=0"
for library in ("runtime", "trace", "cuda", "emulator"):
    path = os.path.join(config.kvcache_build_dir, "lib", f"libkvcache_{library}.so")
    config.substitutions.append((f"%kvcache_{library}", path))
test_programs = os.path.join(config.kvcache_build_dir, "test")
capi_tests = os.path.join(test_programs, "CAPI")
config.substitutions.append(("%capi_tests", capi_tests))
runtime_tests = os.path.join(test_programs, "Runtime")
config.substitutions.append(("%runtime_tests", runtime_tests))
emulator_tests = os.path.join(config.kvcache_build_dir, "emulator", "test", "Runtime")
config.substitutions.append(("%emulator_tests", emulator_tests))
builders = os.path.join(test_programs, "Integration", "Builders")
config.substitutions.append(("%builder_tests", builders))
config.substitutions.append(("%fake_cuda", os.path.join(runtime_tests, "libfake_cuda.so")))
config.substitutions.append(("%mlir_lib_dir", os.path.join(os.path.dirname(config.llvm_tools_dir), "lib")))
config.substitutions.append(("%examples", os.path.join(config.kvcache_source_dir, "examples")))
config.substitutions.append(("%scripts", os.path.join(config.kvcache_source_dir, "scripts")))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%cmake_options", " ".join(map(shlex.quote, config.cmake_options))))
config.substitutions.append(("%cmake", config.cmake))
config.substitutions.append(("%build", config.kvcache_build_dir))
# Flags of a stock mlir-opt.
plugin = os.path.join(config.kvcache_build_dir, "lib", "KVCachePlugin.so")
config.substitutions.append(("%kvcache_plugin", f"--load-dialect-plugin={plugin} --load-pass-plugin={plugin}"))

# Assembling is checked wherever ptxas is, which `scripts/setup.sh` installs.
ptxas = shutil.which("ptxas", path=config.environment["PATH"])
if shutil.which("nvdisasm", path=config.environment["PATH"]):
    config.available_features.add("nvdisasm")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%toolkit", os.path.dirname(os.path.dirname(os.path.realpath(ptxas)))))
if "quick" in lit_config.params:  # leaves out tests that take more than two seconds
    config.available_features.add("quick")
