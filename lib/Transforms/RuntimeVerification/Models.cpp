//===- Models.cpp - Checks by upstream's interface ------------------------===//
//-------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/RuntimeVerification.h"

#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/FragmentRowOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/IR/ViewOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The messages are those of `kvcache.check`, which has the location as well.
struct Verification
    : RuntimeVerifiableOpInterface::FallbackModel<Verification> {
  void generateRuntimeVerification(
      Operation *op, OpBuilder &builder, Location loc,
      function_ref<std::string(Operation *, StringRef)>) const {
    insertRuntimeChecks(builder, loc, op);
  }
};

template <typename... OpTys> void attach(MLIRContext *context) {
  (OpTys::template attachInterface<Verification>(*context), ...);
}

} // namespace

void kvcache::registerRuntimeVerifiableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVCacheDialect *) {
    for (OperationName op : context->getRegisteredOperations())
      if (isa<KVCacheDialect>(op.getDialect()) &&
          op.hasInterface<AccessOpInterface>())
        op.attachInterface<Verification>();
    attach<PagedCollectionOp, ContinuousCollectionOp, PagedCacheOp,
           ContinuousCacheOp, PagedViewOp, ContinuousViewOp, NumKVRowsOp,
           NumScaleRowsOp, GetRowOp, TMARowOp, ColIndexOp, TileLoadOp,
           ClusterLoadOp, TileStoreOp, TileOffsetOp, MmaOp, TmemMmaOp,
           TmemLoadOp, TmemStoreOp, TmemViewOp, FragmentLoadOp, FragmentStoreOp,
           FragmentMmaOp, StoreRowsOp, StoreSplitOp>(context);
    // The dialects of what checks are made of.
    context->loadDialect<arith::ArithDialect, memref::MemRefDialect,
                         scf::SCFDialect>();
  });
}
