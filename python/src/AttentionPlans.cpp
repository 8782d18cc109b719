//===- AttentionPlans.cpp - What is chosen for attention ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"
#include "IR.h"
#include "ReleasedGIL.h"
#include "kvcache/Compile/Guard.h"
#include "kvcache/Compile/Source.h"
#include "kvcache/Transforms/AttentionTuning.h"
#include "kvcache/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

namespace {
/// The texts of an op before and after it is planned.
struct Plan {
  std::string shape, config, bitFields;
};

struct Plans {
  bool succeeded = false;
  std::vector<Plan> plans;
  std::vector<DiagnosticRecord> diagnostics;
};
} // namespace

static std::string print(MLIRContext *context, const AttentionConfig &config) {
  std::string text;
  llvm::raw_string_ostream(text) << AttentionConfigAttr::get(context, config);
  return text;
}

static Plans planUnguarded(StringRef contents, StringRef filename,
                           const std::string &chip) {
  Plans result;
  Source source(contents, filename);
  if (ModuleOp module = source.getModule()) {
    module.walk([&](AttentionOp op) {
      result.plans.push_back({describeShape(op), "", ""});
    });
    PlanAttentionOptions options;
    options.chips = {chip};
    result.succeeded = succeeded(source.run(
        [&](OpPassManager &pm) { pm.addPass(createPlanAttention(options)); }));
    size_t number = 0;
    module.walk([&](AttentionOp op) {
      Plan &plan = result.plans[number++];
      AttentionConfig config = op.getFields();
      plan.config = print(op.getContext(), config);
      plan.bitFields = print(op.getContext(), getBitFields(op, config));
    });
  }
  result.diagnostics = source.getDiagnostics().take();
  return result;
}

static nb::tuple planAttention(const nb::bytes &source,
                               const std::string &filename,
                               const std::string &chip) {
  Plans result;
  std::string contents = toString(source);
  {
    ReleasedGIL released;
    result = runGuarded<Plans>([contents, filename, chip] {
      return planUnguarded(contents, filename, chip);
    });
  }
  nb::object plans = nb::none();
  if (result.succeeded) {
    nb::list found;
    for (const Plan &plan : result.plans)
      found.append(nb::make_tuple(toStr(plan.shape), toStr(plan.config),
                                  toStr(plan.bitFields)));
    plans = found;
  }
  return nb::make_tuple(plans, toPython(result.diagnostics));
}

void python::addAttentionPlans(nb::module_ &module) {
  module.def("plan_attention", &planAttention, nb::arg("source"),
             nb::arg("filename"), nb::arg("chip"));
}
