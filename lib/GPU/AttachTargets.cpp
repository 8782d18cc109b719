//===- AttachTargets.cpp - One chip for every gpu.module ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/Nesting.h"
#include "kvcache/Support/UpstreamDefects.h"
#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/TargetParser/Triple.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_ATTACHTARGETS
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// Threads that a block may have on every chip (CUDA C++ Programming Guide,
/// Technical Specifications per Compute Capability).
constexpr int64_t kMaxThreadsPerBlock = 1024;
constexpr int64_t kMaxBlockDepth = 64;

constexpr StringLiteral kTriple{"nvptx64-nvidia-cuda"};

/// The newest PTX version that ptxas 13.0 reads, as major * 10 + minor.
constexpr unsigned kNewestPTX = 90;

struct AttachTargets : kvcache::impl::AttachTargetsBase<AttachTargets> {
  using AttachTargetsBase::AttachTargetsBase;

  void runOnOperation() override {
    if (optLevel < 0 || optLevel > 3) {
      getOperation().emitError("expects opt-level to be 0 to 3, got ")
          << static_cast<int64_t>(optLevel);
      return signalPassFailure();
    }
    if (failed(checkNestedModules(getOperation())) || failed(checkOutlined()))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    SmallVector<gpu::GPUModuleOp> modules(
        getOperation().getOps<gpu::GPUModuleOp>());
    for (gpu::GPUModuleOp module : modules)
      if (failed(checkKernels(module)) || failed(attach(module, symbols)))
        return signalPassFailure();
  }

private:
  /// Upstream leaves parallel loops that it can't map as they are.
  LogicalResult checkOutlined() {
    WalkResult result = getOperation().walk([](scf::ParallelOp loop) {
      if (isInGPUCode(loop))
        return WalkResult::advance();
      loop.emitOpError("can't become a kernel: nothing but plain loads, stores "
                       "and arithmetic may stand beside it in the body of the "
                       "outer loop, which takes no reduction");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  static LogicalResult checkKernels(gpu::GPUModuleOp module) {
    for (gpu::GPUFuncOp kernel : module.getOps<gpu::GPUFuncOp>()) {
      if (!isPTXIdentifier(kernel.getName()))
        return kernel.emitOpError(getIdentifierRule());
      std::optional<ArrayRef<int32_t>> size = kernel.getKnownBlockSize();
      if (!size)
        continue;
      int64_t threads = 1;
      for (int32_t side : *size) {
        if (side < 1)
          return kernel.emitOpError("expects block sizes of at least 1, got ")
                 << side;
        threads *= side;
      }
      if (size->back() > kMaxBlockDepth)
        return kernel.emitOpError("expects a block size of at most ")
               << kMaxBlockDepth << " along z, got " << size->back();
      if (threads > kMaxThreadsPerBlock)
        return kernel.emitOpError("expects at most ")
               << kMaxThreadsPerBlock << " threads in a block, got " << threads;
    }
    return success();
  }

  LogicalResult attach(gpu::GPUModuleOp module, SymbolTable &symbols) {
    SmallVector<Attribute> targets;
    if (ArrayAttr given = module.getTargetsAttr())
      llvm::append_range(targets, given);
    else
      for (const std::string &chip : chips)
        targets.push_back(
            NVVM::NVVMTargetAttr::get(&getContext(), optLevel, kTriple, chip));
    if (targets.empty())
      return module.emitOpError("expects a target: '#nvvm.target' on the "
                                "module, or the pipeline option 'chip'");
    for (Attribute &given : targets) {
      auto target = dyn_cast<NVVM::NVVMTargetAttr>(given);
      if (!target)
        return module.emitOpError("expects targets of #nvvm.target, got ")
               << given;
      FailureOr<NVVM::NVVMTargetAttr> known = complete(module, target);
      if (failed(known))
        return failure();
      given = *known;
    }

    // Without it, translation aligns 64-bit accesses to 4 bytes.
    Builder builder(&getContext());
    std::string layout = llvm::Triple(kTriple).computeDataLayout();
    module->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                    builder.getStringAttr(layout));
    for (Attribute target : ArrayRef(targets).drop_front()) {
      auto clone = cast<gpu::GPUModuleOp>(module->clone());
      clone.setTargetsAttr(builder.getArrayAttr({target}));
      clone->setAttr(KVCacheDialect::kCloneOfAttr,
                     FlatSymbolRefAttr::get(module.getNameAttr()));
      symbols.insert(clone, std::next(Block::iterator(module)));
    }
    module.setTargetsAttr(builder.getArrayAttr({targets.front()}));
    return success();
  }

  /// The target with the PTX version that its chip asks for.
  FailureOr<NVVM::NVVMTargetAttr> complete(gpu::GPUModuleOp module,
                                           NVVM::NVVMTargetAttr target) {
    const Chip *chip = lookupChip(target.getChip());
    if (!chip) {
      module.emitOpError(getUnknownChipMessage(target.getChip()));
      return failure();
    }
    std::string features = target.getFeatures().str();
    unsigned ptxVersion = 0;
    auto [before, after] = target.getFeatures().split("+ptx");
    if (after.empty())
      features += (features.empty() ? "" : ",") + chip->getFeatures();
    else if (after.split(',').first.getAsInteger(10, ptxVersion) ||
             ptxVersion < chip->ptxVersion || ptxVersion > kNewestPTX) {
      module.emitOpError("expects a PTX version from ")
          << chip->getFeatures() << " to +ptx" << kNewestPTX << " for "
          << chip->name << ", got '" << target.getFeatures() << "'";
      return failure();
    }
    return NVVM::NVVMTargetAttr::get(
        &getContext(), target.getO(), target.getTriple(), target.getChip(),
        features, target.getFlags(), target.getLink(),
        // Upstream rejects tcgen05 for chips that have it; `checkInstructions`
        // accepts all.
        target.getVerifyTarget() &&
            !(upstream::rejectsTcgen05 && chip->has(Feature::TensorMemory)));
  }
};

} // namespace
