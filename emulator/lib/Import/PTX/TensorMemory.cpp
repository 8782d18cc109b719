//===- TensorMemory.cpp - tcgen05 of inline PTX ---------------------------===//
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

static constexpr auto kTensor =
    static_cast<unsigned>(NVVM::NVVMMemorySpace::Tensor);

static NVVM::CTAGroupKind takeGroup(Emitter &emitter) {
  if (emitter.take("cta_group::2"))
    return NVVM::CTAGroupKind::CTA_2;
  emitter.take("cta_group::1");
  return NVVM::CTAGroupKind::CTA_1;
}

static void takeSync(Emitter &emitter) {
  emitter.take("sync");
  emitter.take("aligned");
}

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

/// tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [to], columns;
static void emitAllocate(Emitter &emitter) {
  NVVM::CTAGroupKind group = takeGroup(emitter);
  takeSync(emitter);
  unsigned space = emitter.takeSpace();
  emitter.take("b32");
  if (emitter.expectOperands(2))
    NVVM::Tcgen05AllocOp::create(emitter.builder, emitter.loc,
                                 emitter.getAddress(0, space),
                                 emitter.getInteger(1, 32), group);
}

static void emitDeallocate(Emitter &emitter) {
  NVVM::CTAGroupKind group = takeGroup(emitter);
  takeSync(emitter);
  emitter.take("b32");
  if (emitter.expectOperands(2))
    NVVM::Tcgen05DeallocOp::create(emitter.builder, emitter.loc,
                                   emitter.getPointer(emitter.get(0), kTensor),
                                   emitter.getInteger(1, 32), group);
}

static void emitRelinquish(Emitter &emitter) {
  NVVM::CTAGroupKind group = takeGroup(emitter);
  takeSync(emitter);
  NVVM::Tcgen05RelinquishAllocPermitOp::create(emitter.builder, emitter.loc,
                                               group);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

static NVVM::Tcgen05LdStShape takeShape(Emitter &emitter) {
  using Shape = NVVM::Tcgen05LdStShape;
  StringRef name =
      emitter.takeOneOf({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  emitter.takePrefix("x");
  if (name.empty())
    emitter.fail("expects a shape");
  return llvm::StringSwitch<Shape>(name)
      .Case("16x64b", Shape::SHAPE_16X64B)
      .Case("16x128b", Shape::SHAPE_16X128B)
      .Case("16x256b", Shape::SHAPE_16X256B)
      .Case("16x32bx2", Shape::SHAPE_16X32BX2)
      .Default(Shape::SHAPE_32X32B);
}

/// tcgen05.ld.sync.aligned.32x32b.x2.b32 {a, b}, [from]{, offset};
static void emitTensorLoadRegisters(Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  takeSync(emitter);
  NVVM::Tcgen05LdStShape shape = takeShape(emitter);
  bool isPacked = emitter.take("pack::16b");
  emitter.take("b32");
  if (!emitter.expectOperands(2, 3))
    return;
  size_t count = emitter.getParts(0).size();
  mlir::Type i32 = emitter.getIntegerType(32);
  mlir::Type type = count == 1 ? i32 : VectorType::get(count, i32);
  Value offset = emitter.size() == 3 ? emitter.getInteger(2, 64) : Value();
  Value loaded =
      NVVM::Tcgen05LdOp::create(builder, emitter.loc, type, isPacked, shape,
                                emitter.getAddress(1, kTensor), offset);
  if (count == 1)
    return emitter.setAll(0, loaded);
  SmallVector<Value> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractElementOp::create(
        builder, emitter.loc, loaded, emitter.constant(i, 32)));
  emitter.setAll(0, values);
}

/// tcgen05.st.sync.aligned.32x32b.x2.b32 [to], {offset, }{a, b};
static void emitTensorStoreRegisters(Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  takeSync(emitter);
  NVVM::Tcgen05LdStShape shape = takeShape(emitter);
  bool isUnpacked = emitter.take("unpack::16b");
  emitter.take("b32");
  if (!emitter.expectOperands(2, 3))
    return;
  size_t last = emitter.size() - 1;
  Value offset = last == 2 ? emitter.getInteger(1, 64) : Value();
  mlir::Type i32 = emitter.getIntegerType(32);
  SmallVector<Value> values = emitter.getValues(last, i32);
  Value stored = values.front();
  if (values.size() > 1) {
    stored = LLVM::UndefOp::create(builder, emitter.loc,
                                   VectorType::get(values.size(), i32));
    for (auto [index, value] : llvm::enumerate(values))
      stored = LLVM::InsertElementOp::create(
          builder, emitter.loc, stored, value, emitter.constant(index, 32));
  }
  NVVM::Tcgen05StOp::create(builder, emitter.loc, isUnpacked, shape,
                            emitter.getAddress(0, kTensor), stored, offset);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The lanes of D that stay as they are, as one vector.
static Value getDisabledLanes(size_t index, Emitter &emitter) {
  mlir::Type i32 = emitter.getIntegerType(32);
  SmallVector<Value> words = emitter.getValues(index, i32);
  Value lanes = LLVM::UndefOp::create(emitter.builder, emitter.loc,
                                      VectorType::get(words.size(), i32));
  for (auto [number, word] : llvm::enumerate(words))
    lanes = LLVM::InsertElementOp::create(emitter.builder, emitter.loc, lanes,
                                          word, emitter.constant(number, 32));
  return lanes;
}

/// tcgen05.mma.cta_group::1.kind::f16 [d], a, b, instruction{, lanes},
///     accumulates{, scale};
static void emitTensorProduct(Emitter &emitter) {
  NVVM::CTAGroupKind group = takeGroup(emitter);
  StringRef name = emitter.takeOneOf(
      {"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8"});
  std::optional<NVVM::Tcgen05MMAKind> kind =
      NVVM::symbolizeTcgen05MMAKind(name.substr(name.rfind(':') + 1));
  emitter.takePrefix("collector::");
  if (!kind)
    return emitter.fail("has a kind that has no lowering");
  if (!emitter.expectOperands(5, 7))
    return;
  bool hasLanes = emitter.get(4).kind == Operand::Kind::Vector;
  size_t next = hasLanes ? 5 : 4;
  bool isTensorA = emitter.get(1).kind == Operand::Kind::Address;
  Value a =
      isTensorA ? emitter.getAddress(1, kTensor) : emitter.getInteger(1, 64);
  Value scale =
      emitter.size() > next + 1 ? emitter.getInteger(next + 1, 64) : Value();
  NVVM::Tcgen05MMAOp::create(
      emitter.builder, emitter.loc, *kind, group,
      NVVM::Tcgen05MMACollectorOp::DISCARD, /*aShift=*/false,
      emitter.getAddress(0, kTensor), a, emitter.getInteger(2, 64),
      emitter.getInteger(3, 32), emitter.getPredicate(next), scale,
      hasLanes ? getDisabledLanes(4, emitter) : Value());
}

/// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64
///     [barrier]{, mask};
static void emitTensorCommit(Emitter &emitter) {
  NVVM::CTAGroupKind group = takeGroup(emitter);
  emitter.take("mbarrier::arrive::one");
  bool isMulticast = emitter.take("multicast::cluster");
  emitter.takeSpace();
  emitter.take("b64");
  if (!emitter.expectOperands(1 + isMulticast))
    return;
  Value mask = isMulticast ? emitter.getInteger(1, 16) : Value();
  NVVM::Tcgen05CommitOp::create(emitter.builder, emitter.loc,
                                emitter.getAddress(0, kShared), mask, group);
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// `wait::ld`, `fence::after_thread_sync`; false for others.
static bool emitTensorOrder(Emitter &emitter) {
  if (std::optional<StringRef> what = emitter.takePrefix("wait::")) {
    takeSync(emitter);
    NVVM::Tcgen05WaitOp::create(emitter.builder, emitter.loc,
                                *what == "st" ? NVVM::Tcgen05WaitKind::STORE
                                              : NVVM::Tcgen05WaitKind::LOAD);
    return true;
  }
  std::optional<StringRef> what = emitter.takePrefix("fence::");
  if (!what)
    return false;
  using Kind = NVVM::Tcgen05FenceKind;
  NVVM::Tcgen05FenceOp::create(emitter.builder, emitter.loc,
                               what->starts_with("before")
                                   ? Kind::BEFORE_THREAD_SYNC
                                   : Kind::AFTER_THREAD_SYNC);
  return true;
}

bool ptx::emitTensorMemory(StringRef name, Emitter &emitter) {
  if (name != "tcgen05")
    return false;
  using Emit = void (*)(Emitter &);
  auto emit =
      llvm::StringSwitch<Emit>(
          emitter.takeOneOf({"alloc", "dealloc", "relinquish_alloc_permit",
                             "ld", "st", "mma", "commit"}))
          .Case("alloc", emitAllocate)
          .Case("dealloc", emitDeallocate)
          .Case("relinquish_alloc_permit", emitRelinquish)
          .Case("ld", emitTensorLoadRegisters)
          .Case("st", emitTensorStoreRegisters)
          .Case("mma", emitTensorProduct)
          .Case("commit", emitTensorCommit)
          .Default(nullptr);
  if (emit)
    emit(emitter);
  else if (!emitTensorOrder(emitter))
    emitter.fail("has a form that has no lowering");
  return true;
}
