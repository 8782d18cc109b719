//===- TuningFile.h - Configs that were measured on a GPU -------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TUNINGFILE_H
#define KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TUNINGFILE_H

#include "../Builders/Frame.h"
#include "kvcache/IR/AttentionOps.h"

#include "llvm/Support/JSON.h"

namespace mlir::kvcache {

/// A file in which `kvcache.tune` keeps the fastest config of each shape on the
/// GPUs of one model. python/kvcache/compilation/tuning_files.py writes it.
class TuningFile {
public:
  /// Reads a file for the only one of the chips. Emits an error at `loc` if it
  /// is no tuning file of this version, or is for another chip.
  static FailureOr<TuningFile> read(Location loc, StringRef path,
                                    ArrayRef<std::string> chips);

  /// Returns the complete config that the file has for an op, or `planned`, the
  /// one of tables. Warns about a config that the chip can't have, that changes
  /// a field of the op's config, or that has other bits than the planned one
  /// without saying so.
  AttentionConfig choose(AttentionOp op, const AttentionConfig &planned,
                         const Target &target) const;

private:
  TuningFile(StringRef path, llvm::json::Object shapes)
      : path(path), shapes(std::move(shapes)) {}

  /// Returns the reason why an op can't have the config of an entry; empty if
  /// it can, and sets `config` then.
  std::string complete(AttentionOp op, const llvm::json::Object &entry,
                       const AttentionConfig &planned, const Target &target,
                       AttentionConfig &config) const;

  std::string path;
  /// The entries by the texts of `describeShape`.
  llvm::json::Object shapes;
};

} // namespace mlir::kvcache

#endif // KVCACHE_LIB_TRANSFORMS_PLANATTENTION_TUNINGFILE_H
