//===- ConfigRemarks.cpp - What was chosen for attention ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigRemarks.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::kvcache;

static remark::RemarkOpts getOptions() {
  return remark::RemarkOpts::name("attention").category("kvcache-expand-ops");
}

void kvcache::remarkConfig(AttentionOp op, const AttentionConfig &config) {
  std::string text;
  llvm::raw_string_ostream(text)
      << AttentionConfigAttr::get(op.getContext(), config);
  remark::passed(op.getLoc(), getOptions()) << text;
}

void kvcache::remarkTileObstacle(AttentionOp op) {
  if (std::string obstacle = op.getTileObstacle(); !obstacle.empty())
    remark::missed(op.getLoc(), getOptions())
        << "no tensor cores" << remark::reason("{0}", obstacle);
}
