//===- Bytecode.cpp - Any bytes as encodings of the dialect ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// MLIR's reader trusts a file; the encodings of this dialect don't. So a reader
// of its own gives them what the input has, and a type or an attribute of those
// at hand where they ask for one.
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/BuiltinTypes.h"

#include <fuzzer/FuzzedDataProvider.h>

using namespace mlir;

namespace {

class InputReader : public DialectBytecodeReader {
public:
  InputReader(FuzzedDataProvider &input, MLIRContext *context)
      : input(input), context(context), loc(UnknownLoc::get(context)) {
    Builder builder(context);
    types = {builder.getBF16Type(),
             builder.getF32Type(),
             builder.getI8Type(),
             builder.getIndexType(),
             Float8E4M3FNType::get(context),
             Float8E8M0FNUType::get(context),
             parseType("!kvcache.tile<64x64xbf16, swizzle_128b>", context),
             parseType("!kvcache.paged<i8, #kvcache.params<num_heads = 8, "
                       "head_size = 64>, page_size = 16, scale = f32>",
                       context)};
    attributes = {
        builder.getUnitAttr(), builder.getI64IntegerAttr(-1),
        builder.getStringAttr("x"),
        parseAttribute("#kvcache.params<num_heads = 8, head_size = 64>",
                       context),
        parseAttribute("#kvcache.layout<token = 64, head = 1024>", context)};
  }

  InFlightDiagnostic emitError(const Twine &msg) const override {
    return mlir::emitError(loc, msg);
  }
  FailureOr<const DialectVersion *>
  getDialectVersion(StringRef) const override {
    return failure();
  }
  MLIRContext *getContext() const override { return context; }
  uint64_t getBytecodeVersion() const override { return 6; }

  LogicalResult readAttribute(Attribute &result) override {
    result = pick(attributes);
    return hasMore();
  }
  LogicalResult readOptionalAttribute(Attribute &result) override {
    result = input.ConsumeBool() ? pick(attributes) : Attribute();
    return success();
  }
  LogicalResult readType(Type &result) override {
    result = pick(types);
    return hasMore();
  }
  LogicalResult readVarInt(uint64_t &result) override {
    if (failed(hasMore()))
      return failure();
    result = input.ConsumeBool() ? input.ConsumeIntegral<uint8_t>()
                                 : input.ConsumeIntegral<uint64_t>();
    return success();
  }
  LogicalResult readSignedVarInt(int64_t &result) override {
    uint64_t bits;
    if (failed(readVarInt(bits)))
      return failure();
    result = static_cast<int64_t>(bits);
    return success();
  }
  FailureOr<APInt> readAPIntWithKnownWidth(unsigned width) override {
    return APInt(width, input.ConsumeIntegral<uint64_t>(), /*isSigned=*/false,
                 /*implicitTrunc=*/true);
  }
  FailureOr<APFloat>
  readAPFloatWithKnownSemantics(const llvm::fltSemantics &format) override {
    return APFloat::getZero(format);
  }
  LogicalResult readString(StringRef &result) override {
    text = input.ConsumeRandomLengthString(64);
    result = text;
    return success();
  }
  LogicalResult readBlob(ArrayRef<char> &result) override {
    text = input.ConsumeRandomLengthString(64);
    result = {text.data(), text.size()};
    return success();
  }
  LogicalResult readBool(bool &result) override {
    result = input.ConsumeBool();
    return success();
  }

private:
  /// Nothing is read after the end.
  LogicalResult hasMore() { return success(input.remaining_bytes() > 0); }
  FailureOr<AsmDialectResourceHandle> readResourceHandle() override {
    return failure();
  }
  template <typename T> T pick(const SmallVector<T> &values) {
    return values[input.ConsumeIntegralInRange<size_t>(0, values.size() - 1)];
  }

  FuzzedDataProvider &input;
  MLIRContext *context;
  Location loc;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  std::string text;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider input(data, size);
  MLIRContext &context = kvcache::fuzz::getContext();
  auto *dialect = context.getLoadedDialect<kvcache::KVCacheDialect>();
  auto *encodings = dialect->getRegisteredInterface<BytecodeDialectInterface>();
  InputReader reader(input, &context);
  if (input.ConsumeBool())
    (void)encodings->readType(reader);
  else
    (void)encodings->readAttribute(reader);
  return 0;
}
