//===- ChipRules.cpp - What a chip must have ------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts are from the PTX ISA, "Target ISA Notes" of each instruction. Those of
// mbarriers and fences were checked by ptxas 13.0.
//
//===----------------------------------------------------------------------===//

#include "Families.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// What an op needs of a chip.
struct Need {
  Feature feature = Feature::None;
  /// The oldest chip that has the instruction, as major * 10 + minor, and
  /// whether code has to be for one architecture or family.
  unsigned computeCapability = 0;
  bool isSpecific = false;
};

constexpr unsigned kAda = 89, kHopper = 90;

Need fromChip(unsigned computeCapability, bool isSpecific = false) {
  return {Feature::None, computeCapability, isSpecific};
}

} // namespace

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static Need getNeedOfTensorLoad(NVVM::TMALoadMode mode, bool isToBlock) {
  if (mode != NVVM::TMALoadMode::TILE_GATHER4)
    return {Feature::TMA};
  return {isToBlock ? Feature::Gather4 : Feature::Gather4Cluster};
}

static Need getNeedOfCopy(Operation *op) {
  return llvm::TypeSwitch<Operation *, Need>(op)
      .Case<NVVM::CpAsyncOp, NVVM::CpAsyncCommitGroupOp,
            NVVM::CpAsyncWaitGroupOp, NVVM::CpAsyncMBarrierArriveOp>(
          [](auto op) { return Need{Feature::AsyncCopy}; })
      .Case([](NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
        return getNeedOfTensorLoad(op.getMode(), op.getIsCTAOnly());
      })
      .Case([](NVVM::CpAsyncBulkTensorPrefetchOp op) {
        return getNeedOfTensorLoad(op.getMode(), /*isToBlock=*/false);
      })
      .Case([](NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp op) {
        bool isScatter = op.getMode() == NVVM::TMAStoreMode::TILE_SCATTER4;
        return Need{isScatter ? Feature::Scatter4 : Feature::TMA};
      })
      .Case<NVVM::CpAsyncBulkTensorReduceOp, NVVM::CpAsyncBulkPrefetchOp,
            NVVM::CpAsyncBulkGlobalToSharedClusterOp,
            NVVM::CpAsyncBulkSharedCTAToGlobalOp,
            NVVM::CpAsyncBulkSharedCTAToSharedClusterOp,
            NVVM::CpAsyncBulkCommitGroupOp, NVVM::CpAsyncBulkWaitGroupOp>(
          [](auto op) { return Need{Feature::TMA}; })
      .Case([](NVVM::PrefetchOp op) {
        return op.getTensormap() ? Need{Feature::TMA} : Need();
      })
      .Default([](Operation *) { return Need(); });
}

//===----------------------------------------------------------------------===//
// Barriers and fences
//===----------------------------------------------------------------------===//

/// "mbarrier.arrive": a count without .noComplete, .relaxed and .cluster.
template <typename OpT> static Need getNeedOfArrival(OpT op) {
  bool isNew = op.getCount() || op.getRelaxed() ||
               op.getScope() == NVVM::MemScopeKind::CLUSTER;
  return isNew ? fromChip(kHopper) : Need();
}

static Need getNeedOfFence(NVVM::FenceProxyOp op) {
  return op.getKind() == NVVM::ProxyKind::alias ? Need() : fromChip(kHopper);
}

static Need getNeedOfSynchronization(Operation *op) {
  return llvm::TypeSwitch<Operation *, Need>(op)
      .Case<NVVM::MBarrierExpectTxOp, NVVM::MBarrierCompleteTxOp,
            NVVM::MBarrierArriveExpectTxOp, NVVM::MBarrierArriveDropExpectTxOp>(
          [](auto op) { return Need{Feature::TMA}; })
      .Case<NVVM::MBarrierArriveOp, NVVM::MBarrierArriveDropOp>(
          [](auto op) { return getNeedOfArrival(op); })
      .Case([](NVVM::MBarrierTestWaitOp op) {
        bool isNew =
            op.getRelaxed() || op.getScope() == NVVM::MemScopeKind::CLUSTER;
        return isNew ? fromChip(kHopper) : Need();
      })
      .Case([](NVVM::FenceProxyOp op) { return getNeedOfFence(op); })
      .Case<NVVM::MBarrierTryWaitOp, NVVM::MBarrierTryWaitParityOp,
            NVVM::FenceMbarrierInitOp, NVVM::FenceProxyAcquireOp,
            NVVM::FenceProxyReleaseOp, NVVM::FenceScClusterOp,
            NVVM::GriddepcontrolOp, NVVM::ElectSyncOp>(
          [](auto op) { return fromChip(kHopper); })
      .Case([](NVVM::SetMaxRegisterOp op) {
        return fromChip(kHopper, /*isSpecific=*/true);
      })
      .Case([](NVVM::ReduxOp op) {
        return op.getType().isF32() ? Need{Feature::ReduxF32} : Need();
      })
      .Default([](Operation *) { return Need(); });
}

//===----------------------------------------------------------------------===//
// Matrices and conversions
//===----------------------------------------------------------------------===//

static bool isB16(NVVM::LdStMatrixEltType type) {
  return type == NVVM::LdStMatrixEltType::B16;
}

static Need getNeedOfMatrixOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, Need>(op)
      .Case([](NVVM::LdMatrixOp op) {
        return isB16(op.getEltType()) ? Need() : Need{Feature::LdMatrixB8};
      })
      .Case([](NVVM::StMatrixOp op) {
        // Those of 8 bits came together with the loads.
        return isB16(op.getEltType()) ? fromChip(kHopper)
                                      : Need{Feature::LdMatrixB8};
      })
      .Case([](LLVM::CallIntrinsicOp op) {
        StringRef name = op.getIntrin();
        bool isFP8 = name.contains(".e4m3") || name.contains(".e5m2");
        return isFP8 && name.starts_with("llvm.nvvm.mma.") ? fromChip(kAda)
                                                           : Need();
      })
      .Default([](Operation *) { return Need(); });
}

/// Of 8 bits, with 4 or 5 of exponent, or of others.
static Need getNeedOfFormat(Type format) {
  bool isFP8 = isa<Float8E4M3FNType, Float8E5M2Type>(format);
  return {isFP8 ? Feature::FP8Conversion : Feature::NarrowConversion};
}

static Need getNeedOfConversion(Operation *op) {
  return llvm::TypeSwitch<Operation *, Need>(op)
      .Case([](NVVM::ConvertF32x2ToF8x2Op op) {
        return getNeedOfFormat(op.getDstTy());
      })
      .Case([](NVVM::ConvertF16x2ToF8x2Op op) {
        return getNeedOfFormat(op.getDstTy());
      })
      .Case([](NVVM::ConvertF8x2ToF16x2Op op) {
        return getNeedOfFormat(op.getSrcType());
      })
      .Case<NVVM::ConvertBF16x2ToF8x2Op, NVVM::ConvertF8x2ToBF16x2Op,
            NVVM::ConvertF32x2ToF6x2Op, NVVM::ConvertF6x2ToF16x2Op,
            NVVM::ConvertF32x2ToF4x2Op, NVVM::ConvertF4x2ToF16x2Op,
            NVVM::ConvertF32x4ToF8x4Op, NVVM::ConvertF32x4ToF6x4Op,
            NVVM::ConvertF32x4ToF4x4Op>(
          [](auto op) { return Need{Feature::NarrowConversion}; })
      .Default([](Operation *) { return Need(); });
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

/// The oldest name that a compute capability has.
static std::string getChipName(unsigned computeCapability) {
  return "sm_" + std::to_string(computeCapability);
}

static LogicalResult check(Operation *op, const Need &need, const Chip &chip) {
  if (!chip.has(need.feature))
    return op->emitOpError(getMissingFeatureMessage(chip, need.feature));
  if (chip.computeCapability < need.computeCapability)
    return op->emitOpError("requires ")
           << getChipName(need.computeCapability)
           << (need.isSpecific ? "a" : "") << " or newer, but the target is "
           << chip.name;
  if (need.isSpecific && chip.variant == Variant::Base)
    return op->emitOpError("requires code for one architecture or family, "
                           "such as ")
           << chip.name << "a, but the target is " << chip.name;
  return success();
}

/// Clusters of one block are none.
static LogicalResult checkClusters(LLVM::LLVMFuncOp function) {
  auto sides = function->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getClusterDimAttrName());
  if (sides &&
      llvm::any_of(sides.asArrayRef(), [](int32_t side) { return side != 1; }))
    return function.emitOpError(
        "with clusters of blocks has no lowering for the emulator");
  return success();
}

LogicalResult kvcache::checkInstructions(gpu::GPUModuleOp module,
                                         const Chip &chip) {
  WalkResult result = module.walk([&](Operation *op) {
    for (auto getNeed : {getNeedOfCopy, getNeedOfSynchronization,
                         getNeedOfMatrixOp, getNeedOfConversion})
      if (failed(check(op, getNeed(op), chip)))
        return WalkResult::interrupt();
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
      if (failed(checkClusters(function)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
