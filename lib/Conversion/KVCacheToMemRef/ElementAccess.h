//===- ElementAccess.h - Loads and stores of a view -------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_ELEMENTACCESS_H
#define KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_ELEMENTACCESS_H

#include "Bundle.h"

namespace mlir::kvcache {

/// Where an access starts; the page is null if it has to be looked up.
struct AccessIndices {
  template <typename AdaptorTy>
  AccessIndices(AdaptorTy adaptor, ValueRange page)
      : batch(getSingle(adaptor.getBatch())),
        head(getSingle(adaptor.getHead())),
        token(getSingle(adaptor.getToken())),
        element(getSingle(adaptor.getElement())), page(getSingle(page)) {}

  Value batch, head, token, element, page;
};

/// Consecutive elements of a head, or consecutive scales.
class ElementAccess {
public:
  ElementAccess(const Bundle &cache, const AccessIndices &indices);

  /// Loads `lanes` of them: a scalar, or a vector if `asVector`.
  Value load(Operation *op, int64_t lanes, bool asVector) const;
  /// Stores a scalar or a vector of them.
  void store(Operation *op, Value value) const;
  /// The memory from the first of them on, a row for each token.
  Value getTile(MemRefType tile) const;

private:
  const Bundle &cache;
  /// The first stored element, counted from the view's base.
  Value position;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_CONVERSION_KVCACHETOMEMREF_ELEMENTACCESS_H
