//===- OpFamilies.h - The ops, family by family -----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_IR_OPFAMILIES_H
#define KVCACHE_LIB_IR_OPFAMILIES_H

#include "kvcache/IR/KVCacheDialect.h"

namespace mlir::kvcache {

template <typename... OpTys> void registerOps(KVCacheDialect *dialect) {
  (RegisteredOperationName::insert<OpTys>(*dialect), ...);
}

void registerAccessOps(KVCacheDialect *dialect);
void registerAttentionOps(KVCacheDialect *dialect);
void registerCheckOps(KVCacheDialect *dialect);
void registerCopyOps(KVCacheDialect *dialect);
void registerFragmentOps(KVCacheDialect *dialect);
void registerFragmentProductOps(KVCacheDialect *dialect);
void registerFragmentRowOps(KVCacheDialect *dialect);
void registerFragmentTileOps(KVCacheDialect *dialect);
void registerMatrixOps(KVCacheDialect *dialect);
void registerPageTableOps(KVCacheDialect *dialect);
void registerPartOps(KVCacheDialect *dialect);
void registerPipeOps(KVCacheDialect *dialect);
void registerQuantizationOps(KVCacheDialect *dialect);
void registerQueryOps(KVCacheDialect *dialect);
void registerScalesOps(KVCacheDialect *dialect);
void registerSelectionOps(KVCacheDialect *dialect);
void registerSplitOps(KVCacheDialect *dialect);
void registerTensorMapOps(KVCacheDialect *dialect);
void registerTensorMemoryOps(KVCacheDialect *dialect);
void registerTileOps(KVCacheDialect *dialect);
void registerTMAOps(KVCacheDialect *dialect);
void registerViewOps(KVCacheDialect *dialect);
void registerWholeCacheOps(KVCacheDialect *dialect);

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_IR_OPFAMILIES_H
