//===- Types.cpp - Types of caches ----------------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Types.h"
#include "kvcache/Compile/Source.h"
#include "kvcache/IR/KVCache.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::python;

static std::string toText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static CacheType describe(kvcache::CacheTypeInterface type) {
  CacheType cache;
  cache.elementType = toText(type.getElementType());
  cache.numHeads = type.getNumHeads();
  cache.headSize = type.getHeadSize();
  cache.isMLA = type.isMLA();
  if (type.isPaged())
    cache.pageSize = type.getPageSize();
  if (type.isQuantized()) {
    cache.scale = toText(type.getScale());
    cache.granularity = type.getGranularity();
  }
  return cache;
}

ParsedType kvcache::python::parseCacheType(StringRef text) {
  MLIRContext context(getRegistry(), MLIRContext::Threading::DISABLED);
  DiagnosticCollector diagnostics(&context);
  ParsedType result;
  if (findDeepNesting(text))
    diagnostics.addError(getNestingError());
  else if (Type type = parseType(text, &context, /*numRead=*/nullptr,
                                 /*isKnownNullTerminated=*/false)) {
    auto cache = dyn_cast<kvcache::CacheTypeInterface>(type);
    // The scales of a cache are like one, but not one.
    if (cache && !isa<kvcache::ScalesType>(type))
      result.cache = describe(cache);
  } else if (!diagnostics.hasError())
    diagnostics.addError("the type could not be parsed");
  result.diagnostics = diagnostics.take();
  // The parser takes the text for the name of its file.
  for (DiagnosticRecord &diagnostic : result.diagnostics)
    if (!diagnostic.filename.empty())
      diagnostic.filename = "<string>";
  return result;
}
