//===- EmitPTX.cpp - PTX as text ------------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/EmitPTX.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// An object of a binary.
struct Kernels {
  gpu::BinaryOp binary;
  gpu::ObjectAttr object;

  StringRef getModule() { return binary.getSymName(); }
  StringRef getChip() {
    auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget());
    return target ? target.getChip() : "an unknown target";
  }
  bool isIn(const EmitPTXOptions &options) {
    return matches(options.module, getModule()) &&
           matches(options.chip, getChip());
  }
  std::string describe() {
    return ("'" + getModule() + "' for " + getChip()).str();
  }

private:
  static bool matches(StringRef wanted, StringRef name) {
    return wanted.empty() || wanted == "*" || wanted == name;
  }
};

} // namespace

static std::string list(MutableArrayRef<Kernels> objects) {
  return llvm::join(
      llvm::map_range(objects,
                      [](Kernels &kernels) { return kernels.describe(); }),
      ", ");
}

static LogicalResult check(Operation *op, MutableArrayRef<Kernels> all,
                           MutableArrayRef<Kernels> chosen,
                           const EmitPTXOptions &options) {
  if (all.empty())
    return op->emitError("expects kernels, found none: nested 'scf.parallel' "
                         "loops or a 'gpu.func' with 'kernel' become one");
  if (chosen.empty())
    return op->emitError("has no kernels of module '")
           << options.module << "' for chip '" << options.chip << "', but of "
           << list(all);
  for (Kernels &kernels : chosen)
    if (kernels.object.getFormat() != gpu::CompilationTarget::Assembly)
      return kernels.binary.emitOpError("expects PTX, which format=ptx gives");
  auto differ = [&](auto get) {
    return llvm::any_of(chosen, [&](Kernels &kernels) {
      return get(kernels) != get(chosen.front());
    });
  };
  bool severalModules = options.module.empty() && differ([](Kernels &kernels) {
                          return kernels.getModule();
                        });
  bool severalChips = options.chip.empty() && differ([](Kernels &kernels) {
                        return kernels.getChip();
                      });
  if (severalModules || severalChips)
    return op->emitError("expects the kernels of one module for one chip, got ")
           << list(chosen)
           << ": choose by '--emit-ptx-module' and '--emit-ptx-chip'";
  return success();
}

LogicalResult kvcache::emitPTX(Operation *op, raw_ostream &os,
                               const EmitPTXOptions &options) {
  SmallVector<Kernels> all;
  op->walk([&](gpu::BinaryOp binary) {
    for (auto object : binary.getObjectsAttr().getAsRange<gpu::ObjectAttr>())
      all.push_back({binary, object});
  });
  SmallVector<Kernels> chosen(llvm::make_filter_range(
      all, [&](Kernels &kernels) { return kernels.isIn(options); }));
  if (failed(check(op, all, chosen, options)))
    return failure();
  for (Kernels &kernels : chosen)
    // LLVM ends the text with a zero byte for the driver.
    os << kernels.object.getObject().getValue().rtrim('\0');
  return success();
}
