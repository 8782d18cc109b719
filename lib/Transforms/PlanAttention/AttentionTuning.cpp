//===- AttentionTuning.cpp - What configs are measured for ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Transforms/AttentionTuning.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace mlir::kvcache;

/// Writes the ops of a region with their attributes and types. Operands are
/// left out, because values have no names of their own.
static void writeOps(Region &region, llvm::raw_ostream &text) {
  region.walk<WalkOrder::PreOrder>([&](Operation *op) {
    text << op->getName() << op->getAttrDictionary() << op->getOperandTypes()
         << op->getResultTypes();
  });
}

std::string kvcache::describeShape(AttentionOp op) {
  std::string shape;
  llvm::raw_string_ostream text(shape);
  text << "attention";
  for (auto [number, name] : llvm::enumerate(AttentionOp::getOperandNames()))
    for (Value operand : op.getODSOperands(number))
      text << (text.tell() == StringRef("attention").size() ? " " : ", ")
           << name.rtrim("?*") << ' ' << operand.getType();
  for (StringRef name : AttentionOp::getAttributeNames()) {
    Attribute value = op->getAttr(name);
    if (!value || name == AttentionOp::getOperandSegmentSizeAttr())
      continue;
    text << ", " << name;
    if (!isa<UnitAttr>(value))
      text << " = " << value;
  }
  for (Region &region : op.getModifiers()) {
    std::string ops;
    llvm::raw_string_ostream stream(ops);
    writeOps(region, stream);
    text << ", region " << llvm::formatv("{0:x-16}", llvm::xxh3_64bits(ops));
  }
  return shape;
}

/// Whether the tiles and splits of a row depend on the other rows of its block:
/// those of a block begin where its first row sees a token.
static bool dependsOnBlock(AttentionOp op) {
  bool hasBegin = op.getWindow() || op.getChunk() || op.getRanges();
  bool hasSplitRows = op.splitsKeys() && op.getSplitOrDefault().getRows() > 1;
  return hasBegin || hasSplitRows || op.getMaskRegion();
}

AttentionConfig kvcache::getBitFields(AttentionOp op,
                                      const AttentionConfig &config) {
  AttentionConfig fields;
  fields.mma = config.mma;
  fields.swapAB = config.swapAB;
  fields.keys = config.keys;
  fields.dequant = config.dequant;
  // Warpgroups in turns add scores and row sums in another order.
  if (!op.getValueCache() && config.mma == MmaKind::Wgmma)
    fields.schedule = config.schedule;
  // A share of the powers of roles are polynomials.
  if (config.mma == MmaKind::Tcgen05)
    fields.schedule = config.schedule;
  if (dependsOnBlock(op))
    fields.rows = config.rows;
  return fields;
}
