//===- AttentionSyntax.cpp - The text of attention ------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpSyntax.h"

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/SplitOps.h"

using namespace mlir;
using namespace mlir::kvcache;

ParseResult kvcache::parseAttentionOperands(
    OpAsmParser &parser, OpAsmParser::UnresolvedOperand &q,
    OpAsmParser::UnresolvedOperand &keys,
    std::optional<OpAsmParser::UnresolvedOperand> &values,
    OpAsmParser::UnresolvedOperand &rowOffsets,
    OpAsmParser::UnresolvedOperand &scale) {
  SmallVector<OpAsmParser::UnresolvedOperand> all;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(all))
    return failure();
  if (all.size() != 4 && all.size() != 5)
    return parser.emitError(loc)
           << "expects queries, keys, values unless the cache is latent, row "
              "offsets and a scale, got "
           << all.size() << " operands";
  q = all[0];
  keys = all[1];
  if (all.size() == 5)
    values = all[2];
  rowOffsets = all[all.size() - 2];
  scale = all.back();
  return success();
}
void kvcache::printAttentionOperands(OpAsmPrinter &p, Operation *, Value q,
                                     Value keys, Value values, Value rowOffsets,
                                     Value scale) {
  p << q << ", " << keys << ", ";
  if (values)
    p << values << ", ";
  p << rowOffsets << ", " << scale;
}

ParseResult kvcache::parseAttentionModifiers(
    OpAsmParser &parser, SmallVectorImpl<std::unique_ptr<Region>> &regions,
    std::optional<OpAsmParser::UnresolvedOperand> &sinks,
    std::optional<OpAsmParser::UnresolvedOperand> &mask) {
  auto parseOperand = [&](auto &operand) {
    return parser.parseOperand(operand.emplace());
  };
  if (succeeded(parser.parseOptionalKeyword("score")) &&
      parser.parseRegion(*regions.emplace_back(std::make_unique<Region>())))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("mask"))) {
    auto region = std::make_unique<Region>();
    OptionalParseResult result = parser.parseOptionalRegion(*region);
    if (!result.has_value())
      return parseOperand(mask);
    if (failed(*result))
      return failure();
    regions.push_back(std::move(region));
  }
  if (succeeded(parser.parseOptionalKeyword("sinks")) && parseOperand(sinks))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("mask")))
    return parseOperand(mask);
  return success();
}
void kvcache::printAttentionModifiers(OpAsmPrinter &p, Operation *op,
                                      RegionRange, Value sinks, Value mask) {
  auto attention = cast<AttentionOp>(op);
  for (auto [name, region] : {std::pair("score", attention.getScoreRegion()),
                              std::pair("mask", attention.getMaskRegion())})
    if (region) {
      p << ' ' << name << ' ';
      p.printRegion(*region);
    }
  if (sinks)
    p << " sinks " << sinks;
  if (mask)
    p << " mask " << mask;
}

/// Takes a number of an earlier version's attribute; nothing if there is none.
/// `isFlag` says whether it is a bool.
static FailureOr<std::optional<int64_t>>
takeNumber(OpAsmParser &parser, SMLoc loc, NamedAttrList &attributes,
           StringRef name, StringRef newName, bool isFlag) {
  Attribute value = attributes.erase(name);
  if (!value)
    return std::optional<int64_t>();
  auto number = dyn_cast<IntegerAttr>(value);
  if (!number || isa<BoolAttr>(value) != isFlag ||
      (!isFlag &&
       (number.getValue().isNegative() || !number.getValue().isSignedIntN(64))))
    return parser.emitError(loc)
           << "expects '" << name << "' to be "
           << (isFlag ? "true or false" : "a number that is not negative");
  emitWarning(parser.getEncodedSourceLoc(loc))
      << "'" << name << "' is now " << newName;
  return std::optional<int64_t>(number.getValue().getZExtValue());
}

namespace {
/// A name of an earlier version, what it is called now, and its number.
struct EarlierName {
  StringRef name, newName;
  std::optional<int64_t> &number;
  bool isFlag = false;
};
} // namespace

/// Takes the numbers of earlier names.
static ParseResult takeNumbers(OpAsmParser &parser, SMLoc loc,
                               NamedAttrList &attributes,
                               ArrayRef<EarlierName> names) {
  for (const EarlierName &each : names) {
    auto taken = takeNumber(parser, loc, attributes, each.name, each.newName,
                            each.isFlag);
    if (failed(taken))
      return failure();
    each.number = *taken;
  }
  return success();
}

/// Sets an attribute that earlier names give; null is an error of its own.
static ParseResult setAttribute(OpAsmParser &parser, SMLoc loc,
                                NamedAttrList &attributes, StringRef name,
                                Attribute value) {
  if (!value)
    return failure();
  if (attributes.get(name))
    return parser.emitError(loc)
           << "expects either '" << name
           << "' or the attributes of earlier versions, not both";
  attributes.set(name, value);
  return success();
}

/// Makes `split` of the numbers that were attributes of their own.
static ParseResult takeSplit(OpAsmParser &parser, SMLoc loc,
                             NamedAttrList &attributes) {
  std::optional<int64_t> keys, max, rows;
  if (takeNumbers(parser, loc, attributes,
                  {{"split_tokens", "'keys' of 'split'", keys},
                   {"max_splits", "'max' of 'split'", max},
                   {"split_rows", "'rows' of 'split'", rows}}))
    return failure();
  if (!keys && !max && !rows)
    return success();
  MLIRContext *context = parser.getContext();
  SplitAttr defaults = SplitAttr::getDefault(context);
  auto emitError = [&] { return parser.emitError(loc); };
  return setAttribute(parser, loc, attributes, "split",
                      SplitAttr::getChecked(emitError, context,
                                            keys.value_or(defaults.getKeys()),
                                            max.value_or(defaults.getMax()),
                                            rows.value_or(defaults.getRows())));
}

/// Checks the attributes of an op, as parsers that are generated do.
template <typename OpTy>
static ParseResult checkAttributes(OpAsmParser &parser, SMLoc loc,
                                   NamedAttrList &attributes) {
  OperationName name(OpTy::getOperationName(), parser.getContext());
  return OpTy::verifyInherentAttrs(name, attributes, [&] {
    return parser.emitError(loc) << "'" << name.getStringRef() << "' op ";
  });
}

ParseResult kvcache::parseSplitAttributes(OpAsmParser &parser,
                                          NamedAttrList &attributes) {
  SMLoc loc = parser.getCurrentLocation();
  return failure(parser.parseOptionalAttrDict(attributes) ||
                 takeSplit(parser, loc, attributes) ||
                 checkAttributes<WorkspaceSizeOp>(parser, loc, attributes));
}
void kvcache::printSplitAttributes(OpAsmPrinter &p, Operation *,
                                   DictionaryAttr attributes) {
  p.printOptionalAttrDict(attributes.getValue());
}

ParseResult kvcache::parseAttentionAttributes(OpAsmParser &parser,
                                              NamedAttrList &attributes) {
  SMLoc loc = parser.getCurrentLocation();
  std::optional<int64_t> rows, persistent, swapAB;
  if (parser.parseOptionalAttrDict(attributes) ||
      takeSplit(parser, loc, attributes) ||
      takeNumbers(parser, loc, attributes,
                  {{"tile_rows", "'rows' of 'config', or 'mma = none'", rows},
                   {"scheduled_blocks", "'persistent' of 'config'", persistent},
                   {"swap_operands", "'swap_ab' of 'config'", swapAB,
                    /*isFlag=*/true}}))
    return failure();
  Attribute hint = attributes.erase("l2_hint");
  if (hint && !isa<EvictionAttr>(hint))
    return parser.emitError(loc, "expects 'l2_hint' to be #kvcache.eviction");
  if (hint)
    emitWarning(parser.getEncodedSourceLoc(loc))
        << "'l2_hint' is now a field of 'config'";
  AttentionConfig config;
  if (rows == 0)
    config.mma = MmaKind::None;
  else
    config.rows = rows;
  // Warps take no work items by a counter.
  if (rows != 0) {
    config.persistent = persistent;
    if (swapAB)
      config.swapAB = *swapAB != 0;
  }
  if (hint)
    config.l2Hint = cast<EvictionAttr>(hint).getValue();
  auto emitError = [&] { return parser.emitError(loc); };
  if (!(config == AttentionConfig()) &&
      setAttribute(parser, loc, attributes, "config",
                   AttentionConfigAttr::getChecked(
                       emitError, parser.getContext(), config)))
    return failure();
  return checkAttributes<AttentionOp>(parser, loc, attributes);
}
void kvcache::printAttentionAttributes(OpAsmPrinter &p, Operation *op,
                                       DictionaryAttr attributes) {
  p.printOptionalAttrDict(attributes.getValue(),
                          {AttentionOp::getOperandSegmentSizeAttr()});
}
