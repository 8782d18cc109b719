//===- Memory.cpp - Loads, stores and atomics of inline PTX ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::ptx;

namespace {
/// How an access orders others.
struct Order {
  LLVM::AtomicOrdering ordering = LLVM::AtomicOrdering::not_atomic;
  std::string scope;
  bool isVolatile = false;
};
} // namespace

/// The name of a scope in LLVM's NVPTX back end.
static StringRef getScopeName(NVVM::MemScopeKind scope) {
  switch (scope) {
  case NVVM::MemScopeKind::CTA:
    return "block";
  case NVVM::MemScopeKind::CLUSTER:
    return "cluster";
  case NVVM::MemScopeKind::GPU:
    return "device";
  case NVVM::MemScopeKind::SYS:
    break;
  }
  return "";
}

/// PTX ISA, "Memory Consistency Model".
static Order takeOrder(Emitter &emitter, LLVM::AtomicOrdering otherwise) {
  using Ordering = LLVM::AtomicOrdering;
  Order order;
  StringRef name =
      emitter.takeOneOf({"relaxed", "acquire", "release", "acq_rel", "weak"});
  order.ordering = llvm::StringSwitch<Ordering>(name)
                       .Case("relaxed", Ordering::monotonic)
                       .Case("acquire", Ordering::acquire)
                       .Case("release", Ordering::release)
                       .Case("acq_rel", Ordering::acq_rel)
                       .Default(otherwise);
  StringRef scope = getScopeName(emitter.takeScope(NVVM::MemScopeKind::GPU));
  if (order.ordering != Ordering::not_atomic)
    order.scope = scope.str();
  order.isVolatile = emitter.take("volatile");
  return order;
}

/// Skips cache operators, which change no value. True if an operand has a
/// policy.
static bool takeCaching(Emitter &emitter) {
  emitter.takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  return emitter.takeCacheHints();
}

namespace {
/// An access of one value or of a vector.
struct Access {
  PTXType type;
  unsigned space = 0, count = 1;
  Order order;
  bool isInvariant = false;

  unsigned getBytes() const { return count * type.bits / 8; }
  mlir::Type getType(Emitter &emitter) const {
    mlir::Type element = emitter.getIntegerType(type.bits);
    return count == 1 ? element : VectorType::get(count, element);
  }
};
} // namespace

static std::optional<Access> takeAccess(Emitter &emitter) {
  Access access;
  access.type = emitter.takeType();
  StringRef vector = emitter.takeOneOf({"v2", "v4", "v8"});
  if (!vector.empty())
    vector.drop_front().getAsInteger(10, access.count);
  access.isInvariant = emitter.take("nc");
  // The policy is the last operand.
  bool hasPolicy = takeCaching(emitter);
  access.order = takeOrder(emitter, LLVM::AtomicOrdering::not_atomic);
  access.space = emitter.takeSpace();
  if (access.type.bits < 8)
    emitter.fail("accesses predicates");
  if (access.count > 1 &&
      access.order.ordering != LLVM::AtomicOrdering::not_atomic)
    emitter.fail("is an ordered access of a vector, which has no lowering");
  emitter.expectOperands(hasPolicy ? 3 : 2);
  return emitter.hasFailed() ? std::nullopt : std::optional(access);
}

static void emitLoad(Emitter &emitter) {
  std::optional<Access> access = takeAccess(emitter);
  if (!access)
    return;
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  Value loaded = LLVM::LoadOp::create(
      builder, loc, access->getType(emitter),
      emitter.getAddress(1, access->space), access->getBytes(),
      access->order.isVolatile, /*isNonTemporal=*/false, access->isInvariant,
      /*isInvariantGroup=*/false, access->order.ordering, access->order.scope);
  if (access->count == 1)
    return emitter.setAll(0, loaded, access->type.isSigned());
  SmallVector<Value> elements;
  for (unsigned i = 0; i < access->count; ++i)
    elements.push_back(LLVM::ExtractElementOp::create(builder, loc, loaded,
                                                      emitter.constant(i, 32)));
  emitter.setAll(0, elements, access->type.isSigned());
}

static void emitStore(Emitter &emitter) {
  std::optional<Access> access = takeAccess(emitter);
  if (!access)
    return;
  OpBuilder &builder = emitter.builder;
  Location loc = emitter.loc;
  SmallVector<Value> values =
      emitter.getValues(1, emitter.getIntegerType(access->type.bits));
  if (values.size() != access->count)
    return emitter.fail("expects " + Twine(access->count) +
                        " values to store, got " + Twine(values.size()));
  Value stored = values.front();
  if (access->count > 1) {
    stored = LLVM::PoisonOp::create(builder, loc, access->getType(emitter));
    for (auto [index, value] : llvm::enumerate(values))
      stored = LLVM::InsertElementOp::create(builder, loc, stored, value,
                                             emitter.constant(index, 32));
  }
  LLVM::StoreOp::create(builder, loc, stored,
                        emitter.getAddress(0, access->space),
                        access->getBytes(), access->order.isVolatile,
                        /*isNonTemporal=*/false, /*isInvariantGroup=*/false,
                        access->order.ordering, access->order.scope);
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static std::optional<LLVM::AtomicBinOp>
getAtomicOperation(StringRef name, const PTXType &type) {
  using Op = std::optional<LLVM::AtomicBinOp>;
  using Bin = LLVM::AtomicBinOp;
  if (type.isFloat())
    return llvm::StringSwitch<Op>(name)
        .Case("add", Bin::fadd)
        .Case("min", Bin::fmin)
        .Case("max", Bin::fmax)
        .Default(std::nullopt);
  return llvm::StringSwitch<Op>(name)
      .Case("add", Bin::add)
      .Case("and", Bin::_and)
      .Case("or", Bin::_or)
      .Case("xor", Bin::_xor)
      .Case("exch", Bin::xchg)
      .Case("min", type.isSigned() ? Bin::min : Bin::umin)
      .Case("max", type.isSigned() ? Bin::max : Bin::umax)
      .Case("inc", Bin::uinc_wrap)
      .Case("dec", Bin::udec_wrap)
      .Default(std::nullopt);
}

/// Without an order, atomics are relaxed, and of the device: PTX ISA, "atom".
static void emitAtomic(bool hasResult, Emitter &emitter) {
  using Ordering = LLVM::AtomicOrdering;
  PTXType type = emitter.takeType();
  bool hasPolicy = takeCaching(emitter);
  emitter.take("noftz");
  Order order = takeOrder(emitter, Ordering::monotonic);
  unsigned space = emitter.takeSpace();
  StringRef name = emitter.takeOneOf(
      {"add", "and", "or", "xor", "exch", "cas", "min", "max", "inc", "dec"});
  size_t first = hasResult ? 1 : 0;
  bool isExchange = name == "cas";
  if (!emitter.expectOperands(first + 2 + isExchange + hasPolicy))
    return;
  OpBuilder &builder = emitter.builder;
  mlir::Type element = emitter.convert(type);
  Value pointer = emitter.getAddress(first, space);
  if (isExchange) {
    Ordering onFailure = order.ordering == Ordering::acq_rel ||
                                 order.ordering == Ordering::acquire
                             ? Ordering::acquire
                             : Ordering::monotonic;
    Value pair = LLVM::AtomicCmpXchgOp::create(
        builder, emitter.loc, pointer, emitter.getInteger(first + 1, type.bits),
        emitter.getInteger(first + 2, type.bits), order.ordering, onFailure,
        order.scope);
    return emitter.set(
        0, LLVM::ExtractValueOp::create(builder, emitter.loc, pair, 0));
  }
  std::optional<LLVM::AtomicBinOp> operation = getAtomicOperation(name, type);
  if (!operation)
    return emitter.fail("has an operation that has no lowering");
  Value old = LLVM::AtomicRMWOp::create(
      builder, emitter.loc, *operation, pointer,
      emitter.getValue(first + 1, element), order.ordering, order.scope);
  if (hasResult)
    emitter.set(0, old, type.isSigned());
}

/// isspacep.shared p, a;
static void emitIsInSpace(Emitter &emitter) {
  StringRef space = emitter.takeOneOf(
      {"global", "shared", "shared::cta", "shared::cluster", "local"});
  if (space.empty())
    return emitter.fail("expects '.global', '.shared' or '.local'");
  StringRef name = llvm::StringSwitch<StringRef>(space)
                       .Case("shared::cta", "shared")
                       .Case("shared::cluster", "shared.cluster")
                       .Default(space);
  if (!emitter.expectOperands(2))
    return;
  OpBuilder &builder = emitter.builder;
  Value is = LLVM::CallIntrinsicOp::create(
                 builder, emitter.loc, emitter.getIntegerType(1),
                 builder.getStringAttr("llvm.nvvm.isspacep." + name),
                 emitter.getPointer(emitter.get(1), kGeneric))
                 ->getResult(0);
  emitter.set(0, is);
}

bool ptx::emitMemory(StringRef name, Emitter &emitter) {
  if (name == "ld")
    return emitLoad(emitter), true;
  if (name == "st")
    return emitStore(emitter), true;
  if (name == "atom" || name == "red")
    return emitAtomic(name == "atom", emitter), true;
  if (name == "isspacep")
    return emitIsInSpace(emitter), true;
  return false;
}
