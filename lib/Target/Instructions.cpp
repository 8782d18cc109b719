//===- Instructions.cpp - The chips that have an instruction --------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts are from the PTX ISA, "Target ISA Notes" of each instruction. Those of
// mbarriers and fences were checked by ptxas 13.0. LLVM's back end ends the
// process on an instruction that a chip lacks, so that a test compiles each for
// all chips.
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/Instructions.h"

#include "BackEndLimits.h"
#include "kvcache/IR/Formats.h"
#include "kvcache/Target/Chip.h"
#include "kvcache/Target/Registers.h"
#include "kvcache/Target/Wgmma.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The feature that an op requires of a chip.
struct Need {
  Feature feature = Feature::None;
  /// The oldest chip that has the instruction, as major * 10 + minor, and
  /// whether code has to be for one architecture or family.
  unsigned computeCapability = 0;
  bool isSpecific = false;
  /// The oldest version of PTX, as major * 10 + minor.
  unsigned ptxVersion = 0;

  bool isAnything() const {
    return feature != Feature::None || computeCapability != 0;
  }
};

constexpr unsigned kAda = 89, kHopper = 90, kBlackwell = 100;

Need fromChip(unsigned computeCapability, bool isSpecific = false) {
  return {Feature::None, computeCapability, isSpecific};
}

} // namespace

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static Need getNeedOfTensorLoad(NVVM::TMALoadMode mode, bool isToBlock) {
  switch (mode) {
  case NVVM::TMALoadMode::TILE_GATHER4:
    return {isToBlock ? Feature::Gather4 : Feature::Gather4Cluster};
  case NVVM::TMALoadMode::IM2COL_W:
    return isToBlock ? fromChip(kBlackwell) : Need{Feature::Gather4Cluster};
  case NVVM::TMALoadMode::IM2COL_W_128:
    return {Feature::Gather4Cluster};
  default:
    return {Feature::TMA};
  }
}

static Need getNeedOfCopy(Operation *op) {
  return llvm::TypeSwitch<Operation *, Need>(op)
      .Case<NVVM::CpAsyncOp, NVVM::CpAsyncCommitGroupOp,
            NVVM::CpAsyncWaitGroupOp, NVVM::CpAsyncMBarrierArriveOp>(
          [](auto op) { return Need{Feature::AsyncCopy}; })
      .Case([](NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp op) {
        if (op.getGroup())
          return Need{Feature::TensorMemory};
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
            NVVM::CpAsyncBulkSharedCTAToSharedClusterOp,
            NVVM::CpAsyncBulkCommitGroupOp, NVVM::CpAsyncBulkWaitGroupOp>(
          [](auto op) { return Need{Feature::TMA}; })
      .Case([](NVVM::CpAsyncBulkSharedCTAToGlobalOp op) {
        return op.getByteMask() ? fromChip(kBlackwell) : Need{Feature::TMA};
      })
      // LLVM has those of older chips for no chip before sm_90.
      .Case([](NVVM::PrefetchOp op) {
        return op.getTensormap() ? Need{Feature::TMA} : fromChip(kHopper);
      })
      .Default([](Operation *) { return Need(); });
}

//===----------------------------------------------------------------------===//
// Barriers and fences
//===----------------------------------------------------------------------===//

/// "mbarrier.arrive": a count without .noComplete, .relaxed and .cluster.
static Need getNeedOfArrival(NVVM::MBarrierArriveOp op) {
  bool isNew = op.getCount() || op.getRelaxed() ||
               op.getScope() == NVVM::MemScopeKind::CLUSTER;
  return isNew ? fromChip(kHopper) : Need();
}

static Need getNeedOfFence(NVVM::FenceProxyOp op) {
  return op.getKind() == NVVM::ProxyKind::alias ? Need() : fromChip(kHopper);
}

/// Shared memory of other blocks of the cluster.
static bool isClusterPointer(Type type) {
  auto pointer = dyn_cast<LLVM::LLVMPointerType>(type);
  return pointer &&
         pointer.getAddressSpace() ==
             static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster);
}

static Need getNeedOfAccess(Operation *op) {
  if (!isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
    return Need();
  bool isOfCluster = llvm::any_of(op->getOperandTypes(), isClusterPointer) ||
                     llvm::any_of(op->getResultTypes(), isClusterPointer);
  return isOfCluster ? fromChip(kHopper) : Need();
}

static Need getNeedOfSynchronization(Operation *op) {
  return llvm::TypeSwitch<Operation *, Need>(op)
      .Case<NVVM::MBarrierExpectTxOp, NVVM::MBarrierCompleteTxOp,
            NVVM::MBarrierArriveExpectTxOp, NVVM::MBarrierArriveDropExpectTxOp>(
          [](auto op) { return Need{Feature::TMA}; })
      .Case([](NVVM::MBarrierArriveOp op) { return getNeedOfArrival(op); })
      // LLVM writes its scope, which older chips do not support.
      .Case([](NVVM::MBarrierArriveDropOp op) { return fromChip(kHopper); })
      .Case([](NVVM::MBarrierTestWaitOp op) {
        bool isNew =
            op.getRelaxed() || op.getScope() == NVVM::MemScopeKind::CLUSTER;
        return isNew ? fromChip(kHopper) : Need();
      })
      .Case([](NVVM::FenceProxyOp op) { return getNeedOfFence(op); })
      .Case<NVVM::MBarrierTryWaitOp, NVVM::MBarrierTryWaitParityOp,
            NVVM::FenceMbarrierInitOp, NVVM::FenceProxyAcquireOp,
            NVVM::FenceProxyReleaseOp, NVVM::FenceProxySyncRestrictOp,
            NVVM::FenceSyncRestrictOp, NVVM::FenceScClusterOp,
            NVVM::GriddepcontrolOp, NVVM::ElectSyncOp, NVVM::ClusterArriveOp,
            NVVM::ClusterArriveRelaxedOp, NVVM::ClusterWaitOp, NVVM::MapaOp>(
          [](auto op) { return fromChip(kHopper); })
      .Case([](NVVM::MembarOp op) {
        return op.getScope() == NVVM::MemScopeKind::CLUSTER ? fromChip(kHopper)
                                                            : Need();
      })
      .Case<NVVM::ClusterLaunchControlQueryCancelOp, NVVM::BulkStoreOp>(
          [](auto op) { return fromChip(kBlackwell); })
      .Case([](NVVM::ClusterLaunchControlTryCancelOp op) {
        return fromChip(kBlackwell, /*isSpecific=*/op.getMulticast());
      })
      .Case<LLVM::FenceOp, LLVM::LoadOp, LLVM::StoreOp, LLVM::AtomicRMWOp,
            LLVM::AtomicCmpXchgOp>([](auto op) {
        return op.getSyncscope() == "cluster" ? fromChip(kHopper) : Need();
      })
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
        // Stores of 8 bits are as old as the loads.
        return isB16(op.getEltType()) ? fromChip(kHopper)
                                      : Need{Feature::LdMatrixB8};
      })
      .Case([](NVVM::MmaSpOp op) {
        // "mma.sp::ordered_metadata introduced in PTX ISA version 8.5."
        Need need;
        need.ptxVersion = op.getOrderedMetadata() ? 85 : 0;
        return need;
      })
      .Case<NVVM::MmaBlockScaleOp, NVVM::MmaSpBlockScaleOp>(
          [](auto op) { return Need{Feature::BlockScaleMMA}; })
      .Default([](Operation *) { return Need(); });
}

/// Finds the feature for a format: of 8 bits with 4 or 5 of exponent, or
/// another.
static Need getNeedOfFormat(Type format) {
  bool isFP8 = hasUse(format, FormatUse::FP8);
  return {isFP8 ? Feature::FP8Conversion : Feature::NarrowConversion};
}

/// "cvt", .tf32: .rna on all chips, or from sm_89 with .satfinite; .rn and .rz
/// from sm_90, or from sm_100 with .satfinite.
static Need getNeedOfTF32(NVVM::ConvertFloatToTF32Op op) {
  bool saturates = op.getSat() != NVVM::SaturationMode::NONE;
  if (op.getRnd() == NVVM::FPRoundingMode::RNA)
    return saturates ? fromChip(kAda) : Need();
  return fromChip(saturates ? kBlackwell : kHopper);
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
            NVVM::ConvertF32x2ToF4x2Op, NVVM::ConvertF4x2ToF16x2Op>(
          [](auto op) { return Need{Feature::NarrowConversion}; })
      .Case<NVVM::ConvertF32x4ToF8x4Op, NVVM::ConvertF32x4ToF6x4Op,
            NVVM::ConvertF32x4ToF4x4Op>(
          [](auto op) { return Need{Feature::StochasticRounding}; })
      .Case<NVVM::ConvertF32x2ToF16x2Op, NVVM::ConvertF32x2ToBF16x2Op>(
          [](auto op) {
            return op.getRnd() == NVVM::FPRoundingMode::RS
                       ? Need{Feature::StochasticRounding}
                       : Need();
          })
      .Case([](NVVM::ConvertFloatToTF32Op op) { return getNeedOfTF32(op); })
      .Default([](Operation *) { return Need(); });
}

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

static Need getNeedOfProduct(NVVM::Tcgen05MMAKind kind, bool isScaled) {
  if (kind == NVVM::Tcgen05MMAKind::I8)
    return {Feature::TensorIntegers};
  return {isScaled ? Feature::TensorScale : Feature::TensorMemory};
}

static Need getNeedOfTensorMemory(Operation *op) {
  return llvm::TypeSwitch<Operation *, Need>(op)
      .Case<NVVM::Tcgen05MMAOp, NVVM::Tcgen05MMASparseOp>([](auto op) {
        return getNeedOfProduct(op.getKind(), bool(op.getScaleInputD()));
      })
      .Case<NVVM::Tcgen05MMAWsOp, NVVM::Tcgen05MMAWsSparseOp>([](auto op) {
        return getNeedOfProduct(op.getKind(), /*isScaled=*/false);
      })
      .Case([](NVVM::Tcgen05ShiftOp) { return Need{Feature::TensorShift}; })
      .Default([](Operation *) { return Need(); });
}

/// The group of blocks that a tcgen05 op names.
static std::optional<NVVM::CTAGroupKind> getGroup(Operation *op) {
  if (!op->getName().getStringRef().starts_with("nvvm.tcgen05."))
    return std::nullopt;
  for (StringRef name : {"group", "ctaGroup"})
    if (auto group = dyn_cast_if_present<NVVM::CTAGroupKindAttr>(
            op->getInherentAttr(name).value_or(Attribute())))
      return group.getValue();
  return std::nullopt;
}

/// "CTA Pair": all tcgen05 instructions of a kernel have one cta_group.
static LogicalResult checkGroups(LLVM::LLVMFuncOp function) {
  Operation *first = nullptr;
  WalkResult result = function.walk([&](Operation *op) {
    std::optional<NVVM::CTAGroupKind> group = getGroup(op);
    if (!group)
      return WalkResult::advance();
    if (!first)
      first = op;
    NVVM::CTAGroupKind other = *getGroup(first);
    if (other == *group)
      return WalkResult::advance();
    InFlightDiagnostic diagnostic = op->emitOpError("is for ")
                                    << stringifyCTAGroupKind(*group)
                                    << " in a function with tcgen05 for "
                                    << stringifyCTAGroupKind(other);
    diagnostic.attachNote(first->getLoc()) << "which is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Families of names
//===----------------------------------------------------------------------===//

/// Ops and intrinsics of LLVM whose names begin alike, after `nvvm.`.
static Need getNeedOfName(StringRef name) {
  static const std::pair<StringLiteral, Need> kFamilies[] = {
      {"tcgen05.", {Feature::TensorMemory}},
      {"wgmma.", {Feature::WGMMA}},
      {"read.ptx.sreg.cluster", fromChip(kHopper)},
      {"read.ptx.sreg.nclusterid", fromChip(kHopper)},
      {"read.ptx.sreg.is_explicit_cluster", fromChip(kHopper)},
      {"read.ptx.sreg.aggr.smem", fromChip(kHopper)},
  };
  for (const auto &[prefix, need] : kFamilies)
    if (name.starts_with(prefix))
      return need;
  return Need();
}

/// Intrinsics that have another name than their op.
static Need getNeedOfIntrinsic(StringRef name) {
  static const std::pair<StringLiteral, Need> kFamilies[] = {
      {"barrier.cluster.", fromChip(kHopper)},
      {"mapa", fromChip(kHopper)},
      {"isspacep.shared.cluster", fromChip(kHopper)},
      {"getctarank", fromChip(kHopper)},
      {"fence.mbarrier_init", fromChip(kHopper)},
      {"fence.sc.cluster", fromChip(kHopper)},
      {"fence.acquire.sync_restrict", fromChip(kHopper)},
      {"fence.release.sync_restrict", fromChip(kHopper)},
      {"fence.proxy.tensormap", fromChip(kHopper)},
      {"fence.proxy.async", fromChip(kHopper)},
      {"griddepcontrol.", fromChip(kHopper)},
      {"elect.sync", fromChip(kHopper)},
      {"prefetch", fromChip(kHopper)},
      {"stmatrix.sync.aligned.m8n8", fromChip(kHopper)},
      {"setmaxnreg.", fromChip(kHopper, /*isSpecific=*/true)},
      {"mbarrier.try.wait", fromChip(kHopper)},
      {"mbarrier.expect.tx", {Feature::TMA}},
      {"mbarrier.complete.tx", {Feature::TMA}},
      {"mbarrier.arrive.expect.tx", {Feature::TMA}},
      {"mbarrier.arrive.drop.expect.tx", {Feature::TMA}},
      {"cp.async.bulk.", {Feature::TMA}},
      {"redux.sync.f", {Feature::ReduxF32}},
      {"clusterlaunchcontrol.", fromChip(kBlackwell)},
      {"st.bulk", fromChip(kBlackwell)},
      {"f2tf32.rna.satfinite", fromChip(kAda)},
      {"f2tf32.rna", Need()},
      {"f2tf32.", fromChip(kHopper)},
      {"ff.to.e4m3x2", {Feature::FP8Conversion}},
      {"ff.to.e5m2x2", {Feature::FP8Conversion}},
      {"f16x2.to.e4m3x2", {Feature::FP8Conversion}},
      {"f16x2.to.e5m2x2", {Feature::FP8Conversion}},
      {"e4m3x2.to.", {Feature::FP8Conversion}},
      {"e5m2x2.to.", {Feature::FP8Conversion}},
  };
  for (const auto &[prefix, need] : kFamilies)
    if (name.starts_with(prefix))
      return need;
  bool isFP8 = name.contains(".e4m3") || name.contains(".e5m2");
  return isFP8 && name.starts_with("mma.") ? fromChip(kAda) : Need();
}

static Need getNeedOfFamily(Operation *op) {
  if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
    return RegisterWgmma::get(assembly) ? Need{Feature::WGMMA} : Need();
  StringRef name = op->getName().getStringRef();
  if (name.consume_front("nvvm."))
    return getNeedOfName(name);
  auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
  if (!intrinsic)
    return Need();
  name = intrinsic.getIntrin();
  if (!name.consume_front("llvm.nvvm."))
    return Need();
  Need need = getNeedOfName(name);
  return need.isAnything() ? need : getNeedOfIntrinsic(name);
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
  if (chip.ptxVersion < need.ptxVersion)
    return op->emitOpError("requires PTX ")
           << llvm::formatv("{0}.{1}, but code for {2} is in PTX {3}.{4}",
                            need.ptxVersion / 10, need.ptxVersion % 10,
                            chip.name, chip.ptxVersion / 10,
                            chip.ptxVersion % 10)
                  .str();
  if (need.isSpecific && chip.variant == Variant::Base)
    return op->emitOpError("requires code for one architecture or family, "
                           "such as ")
           << chip.name << "a, but the target is " << chip.name;
  return success();
}

/// CUDA C++ Programming Guide, "Thread Block Clusters": 8 blocks are portable.
/// The back end takes any number.
static LogicalResult checkClusters(LLVM::LLVMFuncOp function,
                                   const Chip &chip) {
  constexpr int64_t maxBlocks = 8;
  auto sides = function->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getClusterDimAttrName());
  if (!sides)
    return success();
  if (chip.computeCapability < kHopper)
    return function.emitOpError("requires ")
           << getChipName(kHopper) << " or newer for clusters, but the target "
           << "is " << chip.name;
  int64_t blocks = 1;
  for (int32_t side : sides.asArrayRef()) {
    if (side < 1)
      return function.emitOpError(
                 "expects positive sides of its clusters, got ")
             << side;
    blocks = std::min(blocks * side, maxBlocks + 1);
  }
  if (blocks > maxBlocks)
    return function.emitOpError("expects clusters of at most ")
           << maxBlocks << " blocks, got sides of " << sides.asArrayRef();
  return success();
}

/// Whether an op changes the number of its thread's registers.
static bool setsMaxRegisters(Operation *op) {
  if (auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return intrinsic.getIntrin().starts_with("llvm.nvvm.setmaxnreg.");
  return isa<NVVM::SetMaxRegisterOp>(op);
}

/// PTX ISA, "setmaxnreg": the kernel has to say how many registers its threads
/// begin with. Other functions may be called by any kernel.
static LogicalResult checkRegisters(Operation *op) {
  if (!setsMaxRegisters(op))
    return success();
  auto kernel = op->getParentOfType<LLVM::LLVMFuncOp>();
  if (!kernel || !kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) ||
      getInitialRegisters(kernel))
    return success();
  return op->emitOpError("requires 'nvvm.maxnreg' of the kernel, or "
                         "'nvvm.minctasm' and the size of its blocks: ptxas "
                         "ignores it without a number of registers");
}

LogicalResult kvcache::checkInstructions(gpu::GPUModuleOp module,
                                         const Chip &chip) {
  WalkResult result = module.walk([&](Operation *op) {
    if (failed(checkBackEndLimits(op)) || failed(checkRegisters(op)))
      return WalkResult::interrupt();
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
      if (failed(checkClusters(function, chip)) ||
          failed(checkGroups(function)))
        return WalkResult::interrupt();
    for (auto getNeed :
         {getNeedOfCopy, getNeedOfAccess, getNeedOfSynchronization,
          getNeedOfMatrixOp, getNeedOfConversion, getNeedOfTensorMemory,
          getNeedOfFamily})
      if (failed(check(op, getNeed(op), chip)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
