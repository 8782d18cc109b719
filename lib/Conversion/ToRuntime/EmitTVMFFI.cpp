//===- EmitTVMFFI.cpp - Wrappers that TVM-FFI calls -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TVMFFIArguments.h"
#include "kvcache/Conversion/Passes.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Runtime/TVMFFI.h"
#include "kvcache/Support/RuntimeCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSwitch.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_EMITTVMFFI
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

namespace {
/// Builds the constants that describe functions, and their wrappers.
class Wrappers {
public:
  Wrappers(ModuleOp module, StringRef deviceName, int32_t device)
      : runtime(module),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        i32(IntegerType::get(module.getContext(), 32)),
        i64(IntegerType::get(module.getContext(), 64)), device(device) {
    if (deviceName == "emulator")
      memory = createMemoryCalls();
    if (deviceName == "cuda")
      scope = createScopeCalls();
  }

  LogicalResult create(func::FuncOp function);

private:
  LLVM::GlobalOp createFunction(func::FuncOp function, StringRef obstacle);
  LLVM::GlobalOp createArguments(func::FuncOp function);
  LLVM::GlobalOp createResults(func::FuncOp function);
  void setValue(FieldBuilder &fields, OpBuilder &builder, Type type,
                StringRef name, int32_t flags, int32_t alignment);
  LLVM::GlobalOp getLayout(MemRefType memref);
  LLVM::GlobalOp getFormat(FloatType type);
  LLVM::GlobalOp createCalls(StringRef name,
                             ArrayRef<LLVM::LLVMFuncOp> functions);
  LLVM::GlobalOp createMemoryCalls();
  LLVM::GlobalOp createScopeCalls();
  LLVM::LLVMFuncOp createEntry(func::FuncOp function, bool hasObstacle);
  Value loadArgument(OpBuilder &builder, Location loc, Type type,
                     Value address);
  void storeResult(OpBuilder &builder, Location loc, Value value,
                   Value address);
  Value getAddress(OpBuilder &builder, LLVM::GlobalOp global) {
    Location loc = runtime.getModule().getLoc();
    if (!global)
      return LLVM::ZeroOp::create(builder, loc, pointer);
    return LLVM::AddressOfOp::create(builder, loc, global);
  }

  /// Builds adjacent 32-bit fields at once.
  Value getNumbers(OpBuilder &builder, ArrayRef<int32_t> numbers) {
    return LLVM::ConstantOp::create(
        builder, runtime.getModule().getLoc(),
        LLVM::LLVMArrayType::get(i32, numbers.size()),
        builder.getI32TensorAttr(numbers));
  }

  /// The fields of KVCacheValue.
  SmallVector<Type> getValueFields() const {
    SmallVector<Type> fields(4, pointer);
    fields.push_back(i64);
    fields.push_back(LLVM::LLVMArrayType::get(i32, 6));
    return fields;
  }

  RuntimeCalls runtime;
  Type pointer, i32, i64;
  int32_t device;
  LLVM::GlobalOp memory, scope;
  llvm::DenseMap<Type, LLVM::GlobalOp> formats, layouts;
};
} // namespace

static int64_t getNumWords(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref ? 3 + 2 * memref.getRank() : 1;
}

/// The format of a float in LLVM.
static KVCacheFloatFormat describeFormat(FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  using llvm::APFloat;
  auto magnitude = [&](const APFloat &value) {
    return static_cast<int64_t>(value.bitcastToAPInt().getZExtValue());
  };
  bool hasZero = APFloat::semanticsHasZero(semantics);
  KVCacheFloatFormat format;
  format.mantissaBits = APFloat::semanticsPrecision(semantics) - 1;
  format.minExponent = APFloat::semanticsMinExponent(semantics);
  format.hasZero = hasZero;
  format.hasSign = APFloat::semanticsHasSignedRepr(semantics);
  format.largest = magnitude(APFloat::getLargest(semantics));
  format.infinity = APFloat::semanticsHasInf(semantics)
                        ? magnitude(APFloat::getInf(semantics))
                        : -1;
  format.nan = APFloat::semanticsHasNaN(semantics)
                   ? magnitude(APFloat::getNaN(semantics))
                   : -1;
  return format;
}

LLVM::GlobalOp Wrappers::getFormat(FloatType type) {
  if (type.getWidth() >= 32)
    return {};
  LLVM::GlobalOp &global = formats[type];
  if (global)
    return global;
  KVCacheFloatFormat format = describeFormat(type);
  int64_t fields[] = {format.mantissaBits, format.minExponent, format.hasZero,
                      format.hasSign,      format.largest,     format.infinity,
                      format.nan};
  Builder builder(type.getContext());
  return global = runtime.createConstant(
             runtime.getModule().getLoc(), "kvcache_format",
             LLVM::LLVMArrayType::get(i64, std::size(fields)),
             builder.getI64TensorAttr(fields));
}

LLVM::GlobalOp Wrappers::getLayout(MemRefType memref) {
  LLVM::GlobalOp &global = layouts[memref];
  if (global)
    return global;
  auto [strides, offset] = memref.getStridesAndOffset();
  SmallVector<int64_t> layout(memref.getShape());
  layout.append(strides.begin(), strides.end());
  if (layout.empty())
    return {};
  static_assert(ShapedType::kDynamic == KVCACHE_DYNAMIC);
  Builder builder(memref.getContext());
  return global = runtime.createConstant(
             runtime.getModule().getLoc(), "kvcache_layout",
             LLVM::LLVMArrayType::get(i64, layout.size()),
             builder.getI64TensorAttr(layout));
}

void Wrappers::setValue(FieldBuilder &fields, OpBuilder &builder, Type type,
                        StringRef name, int32_t flags, int32_t alignment) {
  Location loc = runtime.getModule().getLoc();
  auto memref = dyn_cast<MemRefType>(type);
  NumberType number = memref ? *getElementType(type) : *getNumberType(type);
  auto real = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  int64_t offset = 0;
  if (memref)
    offset = memref.getStridesAndOffset().second;
  KVCacheValueKind kind = memref ? KVCACHE_MEMREF
                          : real ? KVCACHE_FLOAT
                                 : KVCACHE_INTEGER;
  if (number.isSignless)
    flags |= KVCACHE_SIGNLESS;
  if (memref && memref.getLayout().isIdentity())
    flags |= KVCACHE_CONTIGUOUS;
  fields.set(runtime.getString(builder, loc, toString(type)), 0);
  fields.set(runtime.getString(builder, loc, name), 1);
  fields.set(getAddress(builder, memref ? getLayout(memref) : LLVM::GlobalOp()),
             2);
  fields.set(
      getAddress(builder, real && !memref ? getFormat(real) : LLVM::GlobalOp()),
      3);
  fields.set(ShapedType::isDynamic(offset) ? 0 : offset, i64, 4);
  int32_t rank = memref ? memref.getRank() : 0;
  fields.set(
      getNumbers(builder,
                 {kind, number.code, memref ? number.memoryBits : number.bits,
                  rank, std::max(alignment, number.memoryBits / 8), flags}),
      5);
}

LLVM::GlobalOp Wrappers::createArguments(func::FuncOp function) {
  return runtime.createStructs(
      function.getLoc(), "kvcache_arguments", getValueFields(),
      function.getNumArguments(),
      [&](size_t index, FieldBuilder &fields, OpBuilder &builder) {
        auto name = function.getArgAttrOfType<StringAttr>(
            index, KVCacheDialect::kArgNameAttr);
        int32_t flags = 0, alignment = 1;
        addUses(function.getArgument(index), function,
                /*isOfGPU=*/memory || scope, flags, alignment);
        setValue(fields, builder, function.getArgument(index).getType(),
                 name ? name.getValue() : "", flags, alignment);
      });
}

LLVM::GlobalOp Wrappers::createResults(func::FuncOp function) {
  return runtime.createStructs(
      function.getLoc(), "kvcache_results", getValueFields(),
      function.getNumResults(),
      [&](size_t index, FieldBuilder &fields, OpBuilder &builder) {
        setValue(fields, builder, function.getResultTypes()[index], "",
                 /*flags=*/0, /*alignment=*/1);
      });
}

/// Creates a structure of the addresses of functions.
LLVM::GlobalOp Wrappers::createCalls(StringRef name,
                                     ArrayRef<LLVM::LLVMFuncOp> functions) {
  Location loc = runtime.getModule().getLoc();
  SmallVector<Type> types(functions.size(), pointer);
  return runtime.createStruct(
      loc, name, types, [&](FieldBuilder &fields, OpBuilder &builder) {
        for (auto [index, function] : llvm::enumerate(functions))
          fields.set(LLVM::AddressOfOp::create(builder, loc, function),
                     static_cast<int64_t>(index));
      });
}

LLVM::GlobalOp Wrappers::createMemoryCalls() {
  Type none = LLVM::LLVMVoidType::get(pointer.getContext());
  return createCalls(
      "kvcache_memory",
      {runtime.declare("kvcacheEmulatorRegister", none, {pointer, i64}),
       runtime.declare("kvcacheEmulatorRegisterConstant", none, {pointer, i64}),
       runtime.declare("kvcacheEmulatorUnregister", none, {pointer})});
}

LLVM::GlobalOp Wrappers::createScopeCalls() {
  Type none = LLVM::LLVMVoidType::get(pointer.getContext());
  return createCalls(
      "kvcache_scope",
      {runtime.declare("kvcacheScopeEnter", i32, {i32, pointer, pointer}),
       runtime.declare("kvcacheScopeLeave", none, {pointer}),
       runtime.declare("kvcacheGetLastError", pointer, {})});
}

LLVM::GlobalOp Wrappers::createFunction(func::FuncOp function,
                                        StringRef obstacle) {
  LLVM::GlobalOp arguments, results;
  int64_t numWords = function.getNumResults();
  if (obstacle.empty()) {
    if (function.getNumArguments())
      arguments = createArguments(function);
    if (function.getNumResults())
      results = createResults(function);
    for (Type type : function.getArgumentTypes())
      numWords += getNumWords(type);
  }
  SmallVector<Type> types(7, pointer);
  types.push_back(LLVM::LLVMArrayType::get(i32, 4));
  Location loc = function.getLoc();
  return runtime.createStruct(
      loc, ("kvcache_function_" + function.getName()).str(), types,
      [&](FieldBuilder &fields, OpBuilder &builder) {
        Value why = obstacle.empty()
                        ? getAddress(builder, {})
                        : runtime.getString(builder, loc, obstacle);
        fields.set(runtime.getString(builder, loc, function.getName()), 0);
        fields.set(runtime.getString(builder, loc,
                                     toString(function.getFunctionType())),
                   1);
        fields.set(why, 2);
        fields.set(getAddress(builder, arguments), 3);
        fields.set(getAddress(builder, results), 4);
        fields.set(getAddress(builder, memory), 5);
        fields.set(getAddress(builder, scope), 6);
        fields.set(getNumbers(builder,
                              {static_cast<int32_t>(function.getNumArguments()),
                               static_cast<int32_t>(function.getNumResults()),
                               static_cast<int32_t>(numWords), device}),
                   7);
      });
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// The type of a number's bits.
static IntegerType getBitsType(Type type) {
  return IntegerType::get(type.getContext(), getNumberType(type)->bits);
}

Value Wrappers::loadArgument(OpBuilder &builder, Location loc, Type type,
                             Value address) {
  if (auto memref = dyn_cast<MemRefType>(type)) {
    SmallVector<Type> fields = {pointer, pointer, i64};
    if (memref.getRank())
      fields.append(2, LLVM::LLVMArrayType::get(i64, memref.getRank()));
    Type descriptor =
        LLVM::LLVMStructType::getLiteral(builder.getContext(), fields);
    Value loaded = LLVM::LoadOp::create(builder, loc, descriptor, address);
    return UnrealizedConversionCastOp::create(builder, loc, type, loaded)
        .getResult(0);
  }
  Value word = LLVM::LoadOp::create(builder, loc, i64, address);
  if (type.isIndex())
    return arith::IndexCastOp::create(builder, loc, type, word);
  IntegerType bits = getBitsType(type);
  if (bits.getWidth() < 64)
    word = arith::TruncIOp::create(builder, loc, bits, word);
  if (isa<FloatType>(type))
    return arith::BitcastOp::create(builder, loc, type, word);
  if (type == bits)
    return word;
  return UnrealizedConversionCastOp::create(builder, loc, type, word)
      .getResult(0);
}

void Wrappers::storeResult(OpBuilder &builder, Location loc, Value value,
                           Value address) {
  Type type = value.getType();
  IntegerType bits = getBitsType(type);
  if (type.isIndex())
    value = arith::IndexCastOp::create(builder, loc, i64, value);
  else if (isa<FloatType>(type))
    value = arith::BitcastOp::create(builder, loc, bits, value);
  else if (type != bits)
    value = UnrealizedConversionCastOp::create(builder, loc, bits, value)
                .getResult(0);
  if (bits.getWidth() < 64)
    value = arith::ExtUIOp::create(builder, loc, i64, value);
  LLVM::StoreOp::create(builder, loc, value, address);
}

/// Creates the KVCacheEntry of a function.
LLVM::LLVMFuncOp Wrappers::createEntry(func::FuncOp function,
                                       bool hasObstacle) {
  Location loc = function.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(runtime.getModule().getBody());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(builder.getContext()), {pointer});
  auto entry = LLVM::LLVMFuncOp::create(
      builder, loc, ("kvcache_entry_" + function.getName()).str(), type,
      LLVM::Linkage::Internal);
  runtime.getSymbols().insert(entry);
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  int64_t position = 0;
  auto getWord = [&](int64_t count) -> Value {
    position += count;
    return LLVM::GEPOp::create(
        builder, loc, pointer, i64, entry.getArgument(0),
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(position - count)});
  };
  if (!hasObstacle) {
    SmallVector<Value> arguments;
    for (Type argument : function.getArgumentTypes())
      arguments.push_back(
          loadArgument(builder, loc, argument, getWord(getNumWords(argument))));
    auto call = func::CallOp::create(builder, loc, function, arguments);
    // Its code would be there twice.
    call.setNoInlineAttr(builder.getUnitAttr());
    for (Value result : call.getResults())
      storeResult(builder, loc, result, getWord(1));
  }
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  return entry;
}

LogicalResult Wrappers::create(func::FuncOp function) {
  std::string name = ("__tvm_ffi_" + function.getName()).str();
  if (runtime.getSymbols().lookup(name)) {
    function.emitError("expects the module not to define '")
        << name << "', the name of this function's wrapper";
    return failure();
  }
  std::string obstacle = findObstacle(function);
  LLVM::GlobalOp described = createFunction(function, obstacle);
  LLVM::LLVMFuncOp entry = createEntry(function, !obstacle.empty());
  Location loc = function.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(runtime.getModule().getBody());
  auto wrapper = LLVM::LLVMFuncOp::create(
      builder, loc, name,
      LLVM::LLVMFunctionType::get(i32, {pointer, pointer, i32, pointer}));
  runtime.getSymbols().insert(wrapper);
  builder.setInsertionPointToStart(wrapper.addEntryBlock(builder));
  Value status = runtime.call(
      builder, loc, "kvcacheCallTVMFFI", i32,
      {LLVM::AddressOfOp::create(builder, loc, described),
       LLVM::AddressOfOp::create(builder, loc, entry), wrapper.getArgument(1),
       wrapper.getArgument(2), wrapper.getArgument(3)});
  LLVM::ReturnOp::create(builder, loc, status);
  return success();
}

namespace {
struct EmitTVMFFI : kvcache::impl::EmitTVMFFIBase<EmitTVMFFI> {
  using EmitTVMFFIBase::EmitTVMFFIBase;

  void runOnOperation() override {
    constexpr int32_t cpu = 1, cuda = 2, unknown = 0;
    int32_t code = llvm::StringSwitch<int32_t>(device)
                       .Cases({"cpu", "emulator"}, cpu)
                       .Case("cuda", cuda)
                       .Default(unknown);
    if (code == unknown) {
      getOperation().emitError("expects 'device' to be cpu, emulator or cuda, "
                               "got '")
          << device << "'";
      return signalPassFailure();
    }
    auto functions = llvm::filter_to_vector(
        getOperation().getOps<func::FuncOp>(), [](func::FuncOp function) {
          return !function.isExternal() && function.isPublic();
        });
    if (functions.empty())
      return;
    Wrappers wrappers(getOperation(), device, code);
    for (func::FuncOp function : functions)
      if (failed(wrappers.create(function)))
        return signalPassFailure();
  }
};
} // namespace
