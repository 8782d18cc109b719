//===- TokenLoader.cpp - Elements of keys and values ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenLoader.h"

using namespace mlir;
using namespace mlir::kvcache;

Value TokenLoader::loadId(const QueryRows &rows, Value head,
                          Value column) const {
  return frame.loadSigned(op.getRows(),
                          getIdPlace(op.getRows(), rows.first, head, column));
}

Place TokenLoader::getPlace(const QueryRows &rows, Value token,
                            Value id) const {
  if (!id)
    return {rows.batch, token, Value()};
  return getPlaceOfRow(frame, op.getKeyCache(), id);
}

// A scale of tokens is not one of the elements of their rope.
bool TokenLoader::isUnscaled(Value cache) const {
  return !op.getRopeCache() &&
         hasTokenScales(cast<CacheTypeInterface>(cache.getType()));
}

Value TokenLoader::load(Value cache, const Place &place, Value head, Value d,
                        int64_t count, Type lane, bool nontemporal) const {
  return isUnscaled(cache)
             ? loadUnscaled(frame, cache, place, head, d, count, lane,
                            nontemporal)
             : loadElements(frame, cache, place, head, d, count, lane,
                            /*factor=*/Value(), nontemporal);
}
