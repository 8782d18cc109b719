//===- PartOps.cpp - The tensors of a cache -------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/PartOps.h"
#include "kvcache/IR/CacheShape.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Returns the type of the operand, which must be a cache. Otherwise returns
/// null and emits the diagnostic of the verifier.
template <typename OpTy>
static CacheTypeInterface getCache(Type type, std::optional<Location> loc) {
  if (auto cache = dyn_cast<CacheTypeInterface>(type))
    return cache;
  (void)emitOptionalError(loc, "'", OpTy::getOperationName(),
                          "' op operand #0 must be view or collection, but "
                          "got ",
                          type);
  return {};
}

/// A memref whose offset is known only at run time.
static MemRefType getWindow(ArrayRef<int64_t> sizes, Type elementType,
                            ArrayRef<int64_t> strides) {
  return MemRefType::get(sizes, elementType,
                         StridedLayoutAttr::get(elementType.getContext(),
                                                ShapedType::kDynamic, strides));
}

LogicalResult BlocksOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto cache = ::getCache<BlocksOp>(adaptor.getCache().getType(), loc);
  if (!cache)
    return failure();
  constexpr int64_t dynamic = ShapedType::kDynamic;
  SmallVector<int64_t> sizes = {dynamic}, strides = {dynamic};
  if (cache.isCollection()) {
    sizes.append({cache.getNumKV(), dynamic});
    strides.append({dynamic, dynamic});
  }
  sizes.append(
      {cache.getPageSize(), cache.getNumHeads(), cache.getStoredHeadSize()});
  strides.append({cache.getTokenStride(), cache.getHeadStride(), 1});
  types.push_back(getWindow(sizes, cache.getStorageType(), strides));
  return success();
}

LogicalResult CacheLengthsOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> loc,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  if (!::getCache<CacheLengthsOp>(adaptor.getCache().getType(), loc))
    return failure();
  types.push_back(
      getWindow(ShapedType::kDynamic, IntegerType::get(context, 32), 1));
  return success();
}

LogicalResult LookupTableOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> loc,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  auto cache = ::getCache<LookupTableOp>(adaptor.getCache().getType(), loc);
  if (!cache)
    return failure();
  constexpr int64_t dynamic = ShapedType::kDynamic;
  Type i32 = IntegerType::get(context, 32);
  bool hasRows = cache.isPaged() && cache.getTable() != TableKind::CSR;
  types.push_back(hasRows ? getWindow({dynamic, dynamic}, i32, {dynamic, 1})
                          : getWindow(dynamic, i32, 1));
  return success();
}
