//===- SourceFormats.cpp - Formats besides MLIR ---------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Compile/SourceFormats.h"

#include <deque>
#include <mutex>

using namespace mlir;
using namespace mlir::kvcache;

namespace {
/// The registered formats, whose addresses stay valid.
struct Formats {
  std::mutex mutex;
  std::deque<SourceFormat> formats;
};
} // namespace

static Formats &getFormats() {
  static auto *formats = new Formats;
  return *formats;
}

void kvcache::registerSourceFormat(SourceFormat format) {
  Formats &known = getFormats();
  std::lock_guard<std::mutex> lock(known.mutex);
  known.formats.push_back(format);
}

const SourceFormat *kvcache::findSourceFormat(StringRef contents) {
  Formats &known = getFormats();
  std::lock_guard<std::mutex> lock(known.mutex);
  for (const SourceFormat &format : known.formats)
    if (format.matches(contents))
      return &format;
  return nullptr;
}
