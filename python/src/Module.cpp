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

#include "Conversions.h"
#include "Geometry.h"
#include "IR.h"
#include "JIT.h"
#include "ReleasedGIL.h"
#include "kvcache/Compile/Compile.h"
#include "kvcache/Target/Chip.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

static nb::tuple pyCompile(nb::bytes source, const std::string &filename,
                           std::vector<std::string> chips, int optLevel,
                           bool boundsChecks) {
  std::string contents = toString(source);
  CompileOptions options;
  options.chips = std::move(chips);
  options.optLevel = optLevel;
  options.boundsChecks = boundsChecks;
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
                       bool useEmulator) {
  std::string contents = toString(source);
  JIT::Options options{passes, optLevel, useEmulator};
  JIT::CreateResult result;
  {
    ReleasedGIL released;
    result = JIT::create(std::move(contents), filename, std::move(options));
  }
  return nb::make_tuple(std::move(result.jit), toPython(result.diagnostics));
}

template <typename T> static std::vector<T> toVector(const nb::bytes &data) {
  std::vector<T> values(data.size() / sizeof(T));
  // Of no bytes there may be no address.
  if (!values.empty())
    std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  return values;
}

static nb::tuple pyCall(const JIT &jit, const std::string &name,
                        nb::bytes frame, nb::bytes memory) {
  auto words = toVector<uint64_t>(frame);
  auto ranges = toVector<MemoryRange>(memory);
  std::optional<JIT::CallResult> result;
  {
    ReleasedGIL released;
    result = jit.call(name, words, ranges);
  }
  if (!result)
    throw nb::value_error("no such function, or a frame of the wrong size");
  nb::object launches = toStr(result->launches);
  if (result->failedCheck)
    return nb::make_tuple(toStr(*result->failedCheck), launches);
  return nb::make_tuple(
      toBytes({reinterpret_cast<const char *>(result->results.data()),
               result->results.size() * sizeof(uint64_t)}),
      launches);
}

/// What a chip can do, as diagnostics call it; nothing for one unknown.
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
  module.def("chip_features", &pyChipFeatures, nb::arg("chip"));
  module.def("compile", &pyCompile, nb::arg("source"), nb::arg("filename"),
             nb::arg("chips"), nb::arg("opt_level"), nb::arg("bounds_checks"));
  module.def("jit", &pyJIT, nb::arg("source"), nb::arg("filename"),
             nb::arg("passes"), nb::arg("opt_level"), nb::arg("use_emulator"));
  nb::class_<JIT>(module, "JIT")
      .def_prop_ro("functions",
                   [](const JIT &jit) { return toStr(jit.getDescription()); })
      .def("call", &pyCall, nb::arg("name"), nb::arg("frame"),
           nb::arg("memory"));
  addGeometry(module);
  addIR(module);
}
