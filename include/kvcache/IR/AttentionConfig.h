//===- AttentionConfig.h - How a kernel of attention computes ---*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_ATTENTIONCONFIG_H
#define KVCACHE_IR_ATTENTIONCONFIG_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace mlir::kvcache {

enum class DequantPlace : uint32_t;
enum class Eviction : uint32_t;
enum class MmaKind : uint32_t;
enum class Schedule : uint32_t;
enum class SplitMerge : uint32_t;

/// The fields of `#kvcache.attention_config`. Unset ones are chosen for each
/// chip by `kvcache-plan-attention`.
struct AttentionConfig {
  std::optional<MmaKind> mma;
  std::optional<bool> swapAB;
  std::optional<int64_t> rows, keys, stages, accShares;
  std::optional<DequantPlace> dequant;
  std::optional<int64_t> rawStages, convertLoads, persistent;
  std::optional<Eviction> l2Hint;
  std::optional<Schedule> schedule;
  std::optional<SplitMerge> merge;

  /// Calls a function with the name and the value of each field, in the order
  /// of the text.
  template <typename ConfigT, typename FunctionT>
  static void forEachField(ConfigT &config, FunctionT function) {
    function("mma", config.mma);
    function("swap_ab", config.swapAB);
    function("rows", config.rows);
    function("keys", config.keys);
    function("stages", config.stages);
    function("acc_shares", config.accShares);
    function("dequant", config.dequant);
    function("raw_stages", config.rawStages);
    function("convert_loads", config.convertLoads);
    function("persistent", config.persistent);
    function("l2_hint", config.l2Hint);
    function("schedule", config.schedule);
    function("merge", config.merge);
  }

  /// Returns the fields as numbers, with -1 for unset ones.
  SmallVector<int64_t> encode() const {
    SmallVector<int64_t> numbers;
    forEachField(*this, [&](StringRef, const auto &value) {
      numbers.push_back(value ? static_cast<int64_t>(*value) : -1);
    });
    return numbers;
  }

  bool operator==(const AttentionConfig &other) const {
    return encode() == other.encode();
  }
  friend llvm::hash_code hash_value(const AttentionConfig &config) {
    SmallVector<int64_t> numbers = config.encode();
    return llvm::hash_combine_range(numbers.begin(), numbers.end());
  }
};

} // namespace mlir::kvcache

#endif // KVCACHE_IR_ATTENTIONCONFIG_H
