//===- TileAttention.cpp - Expand kvcache.attention to fragments ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileAttention.h"

#include "../Attention/SplitAttention.h"
#include "../PlanAttention/CompleteConfig.h"
#include "../PlanAttention/ConfigRemarks.h"
#include "../PlanAttention/TileSizes.h"
#include "DequantKernel.h"
#include "MmaSyncKernel.h"
#include "PairKernel.h"
#include "PromptKernel.h"
#include "RolesKernel.h"
#include "SeesawKernel.h"
#include "SwapABKernel.h"
#include "Tcgen05Kernel.h"
#include "WgmmaKernel.h"

#include "kvcache/IR/DenseOperands.h"
#include "kvcache/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_TILEATTENTION
#include "kvcache/Transforms/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

struct TileAttention : kvcache::impl::TileAttentionBase<TileAttention> {
  using TileAttentionBase::TileAttentionBase;

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) {
      if (isHostCode(op))
        ops.push_back(op);
    });
    if (ops.empty())
      return markAllAnalysesPreserved();
    FailureOr<Target> target = Target::lookup(ops.front(), chips);
    if (failed(target))
      return signalPassFailure();
    for (AttentionOp op : ops) {
      FailureOr<AttentionConfig> config = completeConfig(op, *target);
      if (failed(config))
        return signalPassFailure();
      if (config->mma == MmaKind::None)
        continue;
      if (failed(verifySplitsAreLeft(op)))
        return signalPassFailure();
      tileAttention(op, *config, *target, checks);
      ++numTiled;
    }
  }

private:
  /// `kvcache-expand-ops` reports ops elsewhere, and those of tensors.
  static bool isHostCode(AttentionOp op) {
    return !llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>) &&
           !op->getParentOfType<gpu::GPUModuleOp>() &&
           !op->getParentOfType<scf::ParallelOp>();
  }
};

} // namespace

static void emitWgmmaKernel(AttentionOp op, const Frame &frame,
                            const AttentionConfig &config) {
  switch (*config.schedule) {
  case Schedule::Prefetch:
    return tileWgmma(op, frame, config);
  case Schedule::Seesaw:
    return tileSeesaw(op, frame, config);
  case Schedule::Pipelined:
  case Schedule::PingPong:
    return tilePrompt(op, frame, config);
  case Schedule::Roles:
  case Schedule::Pair:
    llvm_unreachable("roles and pairs are for tensor memory");
  }
}

static void emitKernel(AttentionOp op, const Frame &frame,
                       const AttentionConfig &config) {
  switch (*config.mma) {
  case MmaKind::None:
    llvm_unreachable("a kernel over tiles has an MMA");
  case MmaKind::Sync:
    return dequantizesInRegisters(config) ? tileDequant(op, frame, config)
                                          : tileMmaSync(op, frame, config);
  case MmaKind::Wgmma:
    if (isSwapAB(config))
      return tileSwapAB(op, frame, config);
    return emitWgmmaKernel(op, frame, config);
  case MmaKind::Tcgen05:
    if (isPair(config))
      return tilePair(op, frame, config);
    return hasRoles(config) ? tileRoles(op, frame, config)
                            : tileTcgen05(op, frame, config);
  }
}

void kvcache::tileAttention(AttentionOp op, const AttentionConfig &config,
                            const Target &target, bool checks) {
  OpBuilder builder(op);
  Frame frame(builder, op, /*isGPU=*/true, checks, target);
  for (DenseOperand operand : getVectorOperands(op))
    frame.checkAlignment(operand.name, operand.value);
  remarkConfig(op, config);
  emitKernel(op, frame, config);
  op.erase();
}
