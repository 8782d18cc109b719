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

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Whether memory that an op writes through this value may be a tile of a slot,
/// which no `alloc_tile` of its own allocates.
static bool mayBeTile(Value written) {
  if (isa<LLVM::LLVMPointerType>(written.getType()))
    return true;
  while (auto view = written.getDefiningOp<ViewLikeOpInterface>())
    written = view.getViewSource();
  return isa<TileType>(written.getType()) &&
         !written.getDefiningOp<AllocTileOp>();
}

/// Whether an op may write to a tile of a slot. Its regions don't count.
static bool mayWriteTile(Operation *op) {
  // Upstream declares no effects for ldmatrix, which only reads. Products write
  // registers or tensor memory, which have no resource of their own.
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
      isa<NVVM::LdMatrixOp, MmaOp, TmemMmaOp>(op))
    return false;
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  if (!interface)
    return llvm::any_of(op->getOperands(), mayBeTile);
  SmallVector<MemoryEffects::EffectInstance> effects;
  interface.getEffects(effects);
  return llvm::any_of(effects, [&](const MemoryEffects::EffectInstance &each) {
    if (!isa<MemoryEffects::Write>(each.getEffect()))
      return false;
    Value written = each.getValue();
    return written ? mayBeTile(written)
                   : llvm::any_of(op->getOperands(), mayBeTile);
  });
}

bool kvcache::mayWriteTiles(ConsumeOp consume) {
  return consume
      .walk<WalkOrder::PreOrder>([](Operation *op) {
        // Barriers order what a pipe copies.
        if (isa<ProduceOp>(op))
          return WalkResult::skip();
        return mayWriteTile(op) ? WalkResult::interrupt()
                                : WalkResult::advance();
      })
      .wasInterrupted();
}
