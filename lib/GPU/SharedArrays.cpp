//===- SharedArrays.cpp - Arrays in dynamic shared memory -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/SharedArrays.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::kvcache;

/// On a kernel: a dictionary from the names of the arrays to their offsets and
/// bytes.
static constexpr StringLiteral kSharedArraysAttr{"kvcache.shared_arrays"};

void kvcache::setSharedArrays(Operation *kernel, ArrayRef<SharedArray> arrays) {
  Builder builder(kernel->getContext());
  SmallVector<NamedAttribute> entries;
  for (const SharedArray &array : arrays)
    entries.push_back(builder.getNamedAttr(
        array.name, builder.getDenseI64ArrayAttr({array.offset, array.bytes})));
  kernel->setAttr(kSharedArraysAttr, builder.getDictionaryAttr(entries));
}

/// The attribute may be written by hand.
static bool areDisjointFromZero(ArrayRef<SharedArray> arrays) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (arrays.empty() || arrays.front().offset != 0)
    return false;
  int64_t end = 0;
  for (const SharedArray &array : arrays) {
    if (array.offset < end || array.bytes <= 0 || array.bytes > limit ||
        array.offset > limit)
      return false;
    end = array.offset + array.bytes;
  }
  return true;
}

SmallVector<SharedArray> kvcache::getSharedArrays(Operation *kernel) {
  auto entries = kernel->getAttrOfType<DictionaryAttr>(kSharedArraysAttr);
  if (!entries)
    return {};
  SmallVector<SharedArray> arrays;
  for (NamedAttribute entry : entries) {
    auto place = dyn_cast<DenseI64ArrayAttr>(entry.getValue());
    if (!place || place.size() != 2)
      return {};
    arrays.push_back({entry.getName(), place[0], place[1]});
  }
  llvm::sort(arrays, [](const SharedArray &lhs, const SharedArray &rhs) {
    return lhs.offset < rhs.offset;
  });
  return areDisjointFromZero(arrays) ? arrays : SmallVector<SharedArray>();
}
