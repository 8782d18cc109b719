//===- TileWrites.cpp - Writes to the tiles of a pipe ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileWrites.h"

#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the memory that a view, or an address in it, is computed from.
static Value findMemory(Value memory) {
  while (Operation *op = memory.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      memory = view.getViewSource();
    else if (isa<LLVM::IntToPtrOp, arith::IndexCastOp, arith::AddIOp,
                 memref::ExtractAlignedPointerAsIndexOp>(op))
      memory = op->getOperand(0);
    else
      break;
  }
  return memory;
}

/// Whether memory that an op writes through this value may be a tile of the
/// slot that a region uses: no `alloc_tile` of its own allocates it, and it is
/// no argument of another region.
static bool mayBeTile(Value written, ConsumeOp consume) {
  Value memory = findMemory(written);
  if (!isa<TileType>(memory.getType()))
    return isa<LLVM::LLVMPointerType>(written.getType());
  if (auto argument = dyn_cast<BlockArgument>(memory)) {
    auto other = dyn_cast<ConsumeOp>(argument.getOwner()->getParentOp());
    return !other || other == consume;
  }
  return !memory.getDefiningOp<AllocTileOp>();
}

/// Whether an op may write to a tile of the slot that a region uses. Regions of
/// the op don't count.
static bool mayWriteTile(Operation *op, ConsumeOp consume) {
  auto mayBe = [&](Value written) { return mayBeTile(written, consume); };
  // Upstream declares no effects for ldmatrix, which only reads. Products write
  // registers or tensor memory, which have no resource of their own.
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
      isa<NVVM::LdMatrixOp, MmaOp, TmemMmaOp>(op))
    return false;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return llvm::any_of(op->getOperands(), mayBe);
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  return llvm::any_of(effects, [&](const MemoryEffects::EffectInstance &each) {
    if (!isa<MemoryEffects::Write>(each.getEffect()))
      return false;
    Value written = each.getValue();
    return written ? mayBe(written) : llvm::any_of(op->getOperands(), mayBe);
  });
}

bool kvcache::mayWriteTiles(ConsumeOp consume) {
  return consume
      .walk<WalkOrder::PreOrder>([&](Operation *op) {
        // Barriers order what a pipe copies.
        if (isa<ProduceOp>(op))
          return WalkResult::skip();
        return mayWriteTile(op, consume) ? WalkResult::interrupt()
                                         : WalkResult::advance();
      })
      .wasInterrupted();
}
