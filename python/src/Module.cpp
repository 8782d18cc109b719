//===- Module.cpp - The Python extension ----------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What only C++ can do, in plain types. The Python package on top checks
// arguments, raises exceptions and documents; _kvcache.pyi has the signatures.
//
//===----------------------------------------------------------------------===//

#include "BodySelection.h"
#include "BuildID.h"
#include "Conversions.h"
#include "Geometry.h"
#include "HostProcessor.h"
#include "IR.h"
#include "JIT.h"
#include "NativeCalls.h"
#include "Object.h"
#include "PlainCalls.h"
#include "PythonAPI.h"
#include "ReleasedGIL.h"
#include "kvcache/Compile/Compile.h"
#include "kvcache/Emulator/Pipelines.h"
#include "kvcache/IR/SplitOps.h"
#include "kvcache/Runtime/Bodies.h"
#include "kvcache/Runtime/Host.h"
#include "kvcache/Target/Chip.h"
#include "llvm-c/Core.h"
#include "llvm/Support/FormatVariadic.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

static nb::tuple pyCompile(nb::bytes source, const std::string &filename,
                           std::vector<std::string> chips, int optLevel,
                           bool boundsChecks, const std::string &toolkit,
                           const std::string &tuning) {
  std::string contents = toString(source);
  CompileOptions options;
  options.chips = std::move(chips);
  options.optLevel = optLevel;
  options.boundsChecks = boundsChecks;
  options.toolkit = toolkit;
  options.tuning = tuning;
  CompileResult result;
  {
    ReleasedGIL released;
    result = compile(std::move(contents), filename, std::move(options));
  }
  if (!result.succeeded)
    return nb::make_tuple(nb::none(), toPython(result.diagnostics));
  nb::list objects;
  for (const CompiledObject &object : result.objects)
    objects.append(nb::make_tuple(toStr(object.module), toStr(object.chip),
                                  toBytes(object.data),
                                  toStr(object.properties)));
  return nb::make_tuple(objects, toPython(result.diagnostics));
}

static nb::tuple pyJIT(nb::bytes source, const std::string &filename,
                       const std::string &passes, unsigned optLevel,
                       const std::string &device, bool keepsImage,
                       bool isOfKernels) {
  std::string contents = toString(source);
  JIT::Options options{passes, optLevel, device, keepsImage, isOfKernels};
  JIT::CreateResult result;
  {
    ReleasedGIL released;
    result = JIT::create(std::move(contents), filename, std::move(options));
  }
  return nb::make_tuple(std::move(result.jit), toPython(result.diagnostics));
}

static nb::tuple pyLoadImage(nb::bytes image, const std::string &device) {
  std::string contents = toString(image);
  JIT::CreateResult result;
  {
    ReleasedGIL released;
    result = JIT::load(std::move(contents), device);
  }
  return nb::make_tuple(std::move(result.jit), toPython(result.diagnostics));
}

/// Describes the dependencies of images: LLVM, and the processor that code is
/// made for.
static nb::tuple pyHost() {
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  std::string version = llvm::formatv("{0}.{1}.{2}", major, minor, patch);
  llvm::Expected<HostProcessor> host = detectHostProcessor();
  if (!host)
    throw nb::value_error(toString(host.takeError()).c_str());
  return nb::make_tuple(toStr(version), toStr(host->name),
                        toStr(host->joinFeatures()));
}

/// Lists the levels of this architecture's processors as tuples of name, bits
/// of vectors, whether there are fused multiply-adds, and matrix instructions.
static nb::list pyCPULevels() {
  nb::list levels;
  for (const CPULevel &level : getCPULevels())
    levels.append(nb::make_tuple(toStr(level.name), level.vectorBits,
                                 level.hasFMA, toStr(level.mma)));
  return levels;
}

static nb::tuple pyCompileObject(nb::bytes source, const std::string &filename,
                                 const std::string &passes, unsigned optLevel,
                                 const std::string &level, bool isOptional) {
  std::string contents = toString(source);
  ObjectOptions options{passes, optLevel, level, isOptional};
  ObjectResult result;
  {
    ReleasedGIL released;
    result = compileObject(std::move(contents), filename, std::move(options));
  }
  nb::object object = nb::none();
  if (result.object)
    object = nb::make_tuple(toBytes(*result.object), result.wrappers);
  return nb::make_tuple(object, toPython(result.diagnostics));
}

static nb::bytes pyCompileSelectors(const std::vector<std::string> &wrappers,
                                    const std::vector<std::string> &levels) {
  llvm::Expected<std::string> object = compileSelectors(wrappers, levels);
  if (!object)
    throw std::runtime_error(toString(object.takeError()));
  return toBytes(*object);
}

namespace {
/// The object that TVM-FFI calls for a function, as long as the function
/// exists.
struct Wrapper {
  int32_t (*call)(void *self, const void *args, int32_t numArgs, void *result);
};
} // namespace

/// Calls a wrapper while other threads of Python run. `self` is the Python
/// object. TVM-FFI could release the lock as well, but a daemon thread that
/// takes it again at the end of the process would end the process: see
/// ReleasedGIL.
static int32_t callReleased(void *self, const void *args, int32_t numArgs,
                            void *result) {
  auto *wrapper = nb::inst_ptr<Wrapper>(static_cast<PyObject *>(self));
  // Callers in other languages don't hold it.
  if (!PyGILState_Check())
    return wrapper->call(nullptr, args, numArgs, result);
  ReleasedGIL released;
  return wrapper->call(nullptr, args, numArgs, result);
}

static Wrapper pyWrapper(const JIT &jit, const std::string &name) {
  Wrapper wrapper;
  wrapper.call = reinterpret_cast<decltype(wrapper.call)>(jit.lookup(name));
  if (!wrapper.call)
    throw nb::value_error("no such function");
  return wrapper;
}

/// Loads the kernels while other threads of Python run.
static std::string pyLoad(const JIT &jit, int32_t device) {
  ReleasedGIL released;
  return jit.load(device);
}

/// The kernels that the functions launch: module, name, and the address of the
/// constant that describes the module.
static nb::list pyKernels(const JIT &jit) {
  nb::list kernels;
  for (const KVCacheKernel &kernel : jit.getKernels())
    kernels.append(nb::make_tuple(toStr(kernel.binary->name),
                                  toStr(kernel.name),
                                  reinterpret_cast<uintptr_t>(kernel.binary)));
  return kernels;
}

/// The addresses of the constants that describe the modules of a source of
/// kernels.
static nb::dict pyBinaries(const JIT &jit) {
  nb::dict binaries;
  for (const auto &binary : jit.getBinaries())
    binaries[toStr(binary.first())] =
        reinterpret_cast<uintptr_t>(binary.second);
  return binaries;
}

/// Lists the features of a chip, as diagnostics name them; empty for an unknown
/// chip.
static nb::list pyChipFeatures(const std::string &name) {
  nb::list features;
  const Chip *chip = lookupChip(name);
  for (unsigned left = chip ? static_cast<unsigned>(chip->supported) : 0; left;
       left &= left - 1)
    features.append(
        toStr(getFeatureName(static_cast<Feature>(left & ~(left - 1)))));
  return features;
}

NB_MODULE(_kvcache, module) {
  registerEmulator();
  // What a daemon thread has at the end of the process Python never frees, and
  // nanobind would call it a mistake of ours. Tests turn the report on.
  nb::set_leak_warnings(false);
  module.def("set_leak_warnings", &nb::set_leak_warnings, nb::arg("on"));
  module.def("chips", [] {
    nb::list names;
    for (const Chip &chip : getChips())
      names.append(toStr(chip.name));
    return names;
  });
  module.def(
      "access_bytes",
      [](const std::string &name) {
        const Chip *chip = lookupChip(name);
        return chip && chip->has(Feature::Access256) ? 32 : 16;
      },
      nb::arg("chip"));
  module.def(
      "workspace_bytes",
      [](int64_t queryHeads, int64_t valueSize, int64_t splits, int64_t rows) {
        WorkspaceShape shape{queryHeads, valueSize, splits, rows};
        return std::pair(shape.getBytes(), WorkspaceShape::kSchedulerBytes);
      },
      nb::arg("query_heads"), nb::arg("value_size"), nb::arg("splits"),
      nb::arg("rows"));
  module.def("chip_features", &pyChipFeatures, nb::arg("chip"));
  module.def("compile", &pyCompile, nb::arg("source"), nb::arg("filename"),
             nb::arg("chips"), nb::arg("opt_level"), nb::arg("bounds_checks"),
             nb::arg("toolkit"), nb::arg("tuning") = "");
  module.def("jit", &pyJIT, nb::arg("source"), nb::arg("filename"),
             nb::arg("passes"), nb::arg("opt_level"), nb::arg("device"),
             nb::arg("keeps_image"), nb::arg("is_of_kernels") = false);
  module.def("load_image", &pyLoadImage, nb::arg("image"), nb::arg("device"));
  module.def("build_id", [] { return toBytes(getBuildID()); });
  module.def("host", &pyHost);
  module.def("compile_object", &pyCompileObject, nb::arg("source"),
             nb::arg("filename"), nb::arg("passes"), nb::arg("opt_level"),
             nb::arg("level"), nb::arg("optional"));
  module.def("compile_selectors", &pyCompileSelectors, nb::arg("wrappers"),
             nb::arg("levels"));
  module.def("cpu_levels", &pyCPULevels);
  module.def("cpu_level", [] {
    const char *level = kvcacheGetCPULevel();
    return std::string(level ? level : "");
  });
  module.def("has_threads", [] { return kvcacheHasThreads() != 0; });
  module.def("request_tiles", [] { return kvcacheRequestTiles() != 0; });
  module.def("helper_library", [] { return toStr(getHelperLibrary()); });
  nb::class_<Wrapper>(module, "Wrapper")
      .def_prop_ro_static("caller", [](nb::handle) {
        return reinterpret_cast<uintptr_t>(&callReleased);
      });
  nb::class_<JIT>(module, "JIT")
      .def_prop_ro("functions",
                   [](const JIT &jit) { return toStr(jit.getDescription()); })
      .def_prop_ro("image",
                   [](const JIT &jit) { return toBytes(jit.getImage()); })
      .def("wrapper", &pyWrapper, nb::arg("name"), nb::keep_alive<0, 1>())
      .def_prop_ro("kernels", &pyKernels)
      .def_prop_ro("binaries", &pyBinaries)
      .def(
          "load",
          [](const JIT &jit, int32_t device) {
            return toStr(pyLoad(jit, device));
          },
          nb::arg("device"))
      .def("take_meter", [](const JIT &jit) { return toStr(jit.takeMeter()); });
  addPlainCalls(module);
  addNativeCalls(module);
  addCheckedCalls(module);
  addGeometry(module);
  addIR(module);
}
