//===- AttentionAttrs.cpp - Splits and configs of attention ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kvcache;

using EmitError = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// Fields of a struct, all of which are optional
//===----------------------------------------------------------------------===//

/// Parses `<name = value, ...>`. `parseField` parses the value of a field, and
/// returns nothing for an unknown name.
static ParseResult
parseFields(AsmParser &parser,
            function_ref<OptionalParseResult(StringRef)> parseField) {
  SmallVector<StringRef> seen;
  auto parse = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    if (llvm::is_contained(seen, name))
      return parser.emitError(loc) << "expects one '" << name << "'";
    seen.push_back(name);
    OptionalParseResult result = parseField(name);
    if (result.has_value())
      return *result;
    return parser.emitError(loc) << "unknown field '" << name << "'";
  };
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::OptionalLessGreater, parse);
}

namespace {
/// Prints fields between commas.
class FieldPrinter {
public:
  explicit FieldPrinter(AsmPrinter &printer) : printer(printer) {
    printer << "<";
  }
  ~FieldPrinter() { printer << ">"; }

  template <typename T> void print(StringRef name, T value) {
    printer << (isFirst ? "" : ", ") << name << " = " << value;
    isFirst = false;
  }

private:
  AsmPrinter &printer;
  bool isFirst = true;
};
} // namespace

static ParseResult parseValue(AsmParser &parser,
                              std::optional<int64_t> &value) {
  return parser.parseInteger(value.emplace());
}
static ParseResult parseValue(AsmParser &parser, std::optional<bool> &value) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  if (word != "true" && word != "false")
    return parser.emitError(loc, "expects true or false");
  value = word == "true";
  return success();
}
template <typename EnumT>
static ParseResult parseCase(AsmParser &parser, std::optional<EnumT> &value,
                             std::optional<EnumT> (*symbolize)(StringRef)) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  value = symbolize(word);
  if (value)
    return success();
  InFlightDiagnostic error = parser.emitError(loc, "expects one of ");
  for (uint32_t number = 0; !stringifyEnum(EnumT(number)).empty(); ++number)
    error << (number ? ", " : "") << stringifyEnum(EnumT(number));
  return error << ", got " << word;
}
static ParseResult parseValue(AsmParser &parser,
                              std::optional<MmaKind> &value) {
  return parseCase(parser, value, symbolizeMmaKind);
}
static ParseResult parseValue(AsmParser &parser,
                              std::optional<DequantPlace> &value) {
  return parseCase(parser, value, symbolizeDequantPlace);
}
static ParseResult parseValue(AsmParser &parser,
                              std::optional<Eviction> &value) {
  return parseCase(parser, value, symbolizeEviction);
}
static ParseResult parseValue(AsmParser &parser,
                              std::optional<Schedule> &value) {
  return parseCase(parser, value, symbolizeSchedule);
}
static ParseResult parseValue(AsmParser &parser,
                              std::optional<SplitMerge> &value) {
  return parseCase(parser, value, symbolizeSplitMerge);
}

static int64_t toText(int64_t value) { return value; }
static StringRef toText(bool value) { return value ? "true" : "false"; }
template <typename EnumT> static StringRef toText(EnumT value) {
  return stringifyEnum(value);
}

//===----------------------------------------------------------------------===//
// #kvcache.split
//===----------------------------------------------------------------------===//

SplitAttr SplitAttr::getDefault(MLIRContext *context) {
  return get(context, /*keys=*/256, /*max=*/32, /*rows=*/1);
}

Attribute SplitAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SplitAttr defaults = getDefault(parser.getContext());
  int64_t keys = defaults.getKeys(), max = defaults.getMax(),
          rows = defaults.getRows();
  auto parseField = [&](StringRef name) -> OptionalParseResult {
    for (auto [known, number] :
         {std::pair("keys", &keys), std::pair("max", &max),
          std::pair("rows", &rows)})
      if (name == known)
        return OptionalParseResult(parser.parseInteger(*number));
    return std::nullopt;
  };
  if (parseFields(parser, parseField))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    keys, max, rows);
}

void SplitAttr::print(AsmPrinter &printer) const {
  FieldPrinter fields(printer);
  fields.print("keys", getKeys());
  fields.print("max", getMax());
  fields.print("rows", getRows());
}

LogicalResult SplitAttr::verify(EmitError emitError, int64_t keys, int64_t max,
                                int64_t rows) {
  constexpr int64_t most = 1 << 20;
  for (auto [name, number] : {std::pair("keys", keys), std::pair("max", max),
                              std::pair("rows", rows)})
    // (C1)
    if (number < 1 || number > most)
      return emitError() << "expects '" << name << "' to be from 1 to " << most
                         << ", got " << number;
  return success();
}

//===----------------------------------------------------------------------===//
// #kvcache.attention_config
//===----------------------------------------------------------------------===//

Attribute AttentionConfigAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  AttentionConfig config;
  auto parseField = [&](StringRef name) {
    OptionalParseResult result = std::nullopt;
    AttentionConfig::forEachField(config, [&](StringRef known, auto &value) {
      if (name == known)
        result = parseValue(parser, value);
    });
    return result;
  };
  if (parseFields(parser, parseField))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    config);
}

void AttentionConfigAttr::print(AsmPrinter &printer) const {
  FieldPrinter fields(printer);
  AttentionConfig config = getConfig();
  AttentionConfig::forEachField(config, [&](StringRef name, const auto &value) {
    if (value)
      fields.print(name, toText(*value));
  });
}

AttentionConfigAttr AttentionConfigAttr::getChecked(EmitError emitError,
                                                    MLIRContext *context,
                                                    ArrayRef<int64_t> numbers) {
  AttentionConfig config;
  ArrayRef<int64_t> rest = numbers;
  AttentionConfig::forEachField(config, [&](StringRef, auto &value) {
    if (rest.empty())
      return;
    if (rest.front() >= 0)
      value = static_cast<std::decay_t<decltype(*value)>>(rest.front());
    rest = rest.drop_front();
  });
  // Earlier versions have fewer fields.
  SmallVector<int64_t> encoded = config.encode();
  if (ArrayRef(encoded).take_front(numbers.size()) != numbers) {
    emitError() << "expects the numbers of the fields of a config";
    return {};
  }
  return getChecked(emitError, context, config);
}

LogicalResult AttentionConfigAttr::verify(EmitError emitError,
                                          AttentionConfig config) {
  auto refuse = [&](StringRef name, StringRef rule, int64_t number) {
    return emitError() << "expects '" << name << "' to be " << rule << ", got "
                       << number;
  };
  if ((config.mma && stringifyEnum(*config.mma).empty()) ||
      (config.dequant && stringifyEnum(*config.dequant).empty()) ||
      (config.l2Hint && stringifyEnum(*config.l2Hint).empty()) ||
      (config.schedule && stringifyEnum(*config.schedule).empty()) ||
      (config.merge && stringifyEnum(*config.merge).empty()))
    return emitError() << "expects the numbers of enum cases";
  // (C1)
  if (config.rows && !llvm::is_contained({16, 32, 64, 128, 256}, *config.rows))
    return refuse("rows", "16, 32, 64, 128 or 256", *config.rows);
  if (config.keys &&
      (*config.keys < 16 || *config.keys > 128 || *config.keys % 16))
    return refuse("keys", "a multiple of 16 from 16 to 128", *config.keys);
  for (auto [name, number, least, most] :
       {std::tuple("stages", config.stages, 1, 16),
        std::tuple("convert_loads", config.convertLoads, 1, 16),
        std::tuple("acc_shares", config.accShares, 1, 2),
        std::tuple("raw_stages", config.rawStages, 0, 2),
        std::tuple("persistent", config.persistent, 0, 1 << 20)})
    if (number && (*number < least || *number > most))
      return refuse(name, llvm::formatv("from {0} to {1}", least, most).str(),
                    *number);
  // (C2)
  if (config.mma == MmaKind::None) {
    AttentionConfig allowed;
    allowed.mma = config.mma;
    allowed.l2Hint = config.l2Hint;
    if (!(config == allowed))
      return emitError() << "expects no field but 'l2_hint' with 'mma = none'";
  }
  // (C3)
  if (config.swapAB.value_or(false) && config.rows && *config.rows > 32)
    return refuse("rows", "16 or 32 with 'swap_ab = true'", *config.rows);
  // (C4)
  if (config.merge == SplitMerge::Cluster && config.persistent.value_or(0))
    return refuse("persistent", "0 with 'merge = cluster'", *config.persistent);
  // (C5)
  if (config.merge == SplitMerge::Cluster && config.mma &&
      *config.mma != MmaKind::Sync)
    return emitError() << "expects 'mma' to be mma_sync with 'merge = "
                          "cluster', got "
                       << stringifyEnum(*config.mma);
  return success();
}
