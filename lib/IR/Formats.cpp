//===- Formats.cpp - The formats of elements and scales -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/Formats.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

static ArrayRef<ElementFormat> getFormats() {
  using namespace FormatUse;
  static const ElementFormat formats[] = {
#define KVCACHE_FORMAT(name, bits, type, dtype, code, uses)                    \
  {#name, bits, TypeID::get<type>(), code, uses},
#include "kvcache/Runtime/Formats.def"
  };
  return formats;
}

const ElementFormat *kvcache::lookupFormat(Type type) {
  if (!type || (isa<IntegerType>(type) && !type.isSignlessInteger()))
    return nullptr;
  const ElementFormat *found =
      llvm::find_if(getFormats(), [&](const ElementFormat &format) {
        return format.typeID == type.getTypeID() &&
               format.bits == type.getIntOrFloatBitWidth();
      });
  return found == getFormats().end() ? nullptr : found;
}

bool kvcache::hasUse(Type type, FormatUse::Set uses) {
  const ElementFormat *format = lookupFormat(type);
  return format && (format->uses & uses);
}

std::string kvcache::listFormats(FormatUse::Set uses) {
  SmallVector<StringRef> names;
  for (const ElementFormat &format : getFormats())
    if (format.uses & uses)
      names.push_back(format.name);
  StringRef last = names.pop_back_val();
  std::string others = llvm::join(names, ", ");
  return others.empty() ? last.str() : others + " or " + last.str();
}
