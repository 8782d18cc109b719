//===- RuntimeVerificationModels.cpp - Checks by upstream's interface -----===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/RuntimeVerification.h"

#include "kvcache/IR/KVCache.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The messages are those of `kvcache.check`, which has the location as well.
template <typename OpTy>
struct Verification
    : RuntimeVerifiableOpInterface::ExternalModel<Verification<OpTy>, OpTy> {
  void generateRuntimeVerification(
      Operation *op, OpBuilder &builder, Location loc,
      function_ref<std::string(Operation *, StringRef)>) const {
    insertRuntimeChecks(builder, loc, op);
  }
};

template <typename OpTy> void attachToAccess(MLIRContext *context) {
  if constexpr (OpTy::template hasTrait<AccessOpInterface::Trait>())
    OpTy::template attachInterface<Verification<OpTy>>(*context);
}

template <typename... OpTys> void attachToAccesses(MLIRContext *context) {
  (attachToAccess<OpTys>(context), ...);
}

template <typename... OpTys> void attach(MLIRContext *context) {
  (OpTys::template attachInterface<Verification<OpTys>>(*context), ...);
}

} // namespace

void kvcache::registerRuntimeVerifiableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, KVCacheDialect *) {
    attachToAccesses<
#define GET_OP_LIST
#include "kvcache/IR/KVCacheOps.cpp.inc"
        >(context);
    attach<PagedCollectionOp, ContinuousCollectionOp, PagedCacheOp,
           ContinuousCacheOp, PagedViewOp, ContinuousViewOp, NumKVRowsOp,
           NumScaleRowsOp, GetRowOp, TMARowOp, ColIndexOp, TileLoadOp,
           TileStoreOp, TileOffsetOp>(context);
    // The dialects of what checks are made of.
    context->loadDialect<arith::ArithDialect, memref::MemRefDialect,
                         scf::SCFDialect>();
  });
}
