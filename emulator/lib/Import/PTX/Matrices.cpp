//===- Matrices.cpp - Matrix instructions of inline PTX -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include "kvcache/Target/Wgmma.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::kvcache;
using namespace mlir::kvcache::ptx;

//===----------------------------------------------------------------------===//
// ldmatrix, stmatrix
//===----------------------------------------------------------------------===//

namespace {
/// The form of both instructions, by their names.
struct MatrixForm {
  NVVM::LdStMatrixShapeAttr shape;
  NVVM::LdStMatrixEltType element = NVVM::LdStMatrixEltType::B16;
  NVVM::MMALayout layout = NVVM::MMALayout::row;
  unsigned count = 1;
};
} // namespace

static MatrixForm takeForm(Emitter &emitter) {
  MatrixForm form;
  emitter.take("sync");
  emitter.take("aligned");
  StringRef shape = emitter.takeOneOf({"m8n8", "m16n16", "m16n8"});
  if (shape.empty())
    emitter.fail("expects a shape");
  int64_t m = shape == "m8n8" ? 8 : 16, n = shape == "m16n16" ? 16 : 8;
  form.shape = NVVM::LdStMatrixShapeAttr::get(
      emitter.builder.getContext(), static_cast<int>(m), static_cast<int>(n));
  StringRef count = emitter.takeOneOf({"x1", "x2", "x4"});
  count.drop_front().getAsInteger(10, form.count);
  if (emitter.take("trans"))
    form.layout = NVVM::MMALayout::col;
  emitter.takeOneOf({"shared", "shared::cta"});
  if (emitter.take("b8"))
    form.element = NVVM::LdStMatrixEltType::B8;
  else if (!emitter.take("b16"))
    emitter.fail("expects matrices of '.b16' or '.b8'");
  return form;
}

/// A structure of so many registers; the type itself for one.
static mlir::Type getRegisters(mlir::Type type, size_t count) {
  if (count == 1)
    return type;
  return LLVM::LLVMStructType::getLiteral(type.getContext(),
                                          SmallVector<mlir::Type>(count, type));
}

/// Sets the registers of operand 0 to the parts of a result.
static void setRegisters(Value result, size_t count, Emitter &emitter) {
  if (count == 1)
    return emitter.setAll(0, result);
  SmallVector<Value> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(
        LLVM::ExtractValueOp::create(emitter.builder, emitter.loc, result, i));
  emitter.setAll(0, parts);
}

static void emitLoadMatrix(Emitter &emitter) {
  MatrixForm form = takeForm(emitter);
  if (!emitter.expectOperands(2))
    return;
  // A matrix of 16 x 16 bytes has two registers.
  size_t count = emitter.getParts(0).size();
  Value result =
      NVVM::LdMatrixOp::create(emitter.builder, emitter.loc,
                               getRegisters(emitter.getIntegerType(32), count),
                               emitter.getAddress(1, kShared), form.count,
                               form.layout, form.shape, form.element);
  setRegisters(result, count, emitter);
}

static void emitStoreMatrix(Emitter &emitter) {
  MatrixForm form = takeForm(emitter);
  if (!emitter.expectOperands(2))
    return;
  SmallVector<Value> sources = emitter.getValues(1, emitter.getIntegerType(32));
  if (sources.size() != form.count)
    return emitter.fail("expects " + Twine(form.count) + " registers, got " +
                        Twine(sources.size()));
  NVVM::StMatrixOp::create(emitter.builder, emitter.loc,
                           emitter.getAddress(0, kShared), sources, form.layout,
                           form.shape, form.element);
}

//===----------------------------------------------------------------------===//
// mma
//===----------------------------------------------------------------------===//

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {d}, {a}, {b}, {c};
/// becomes the intrinsic whose name has all four types.
static void emitMma(Emitter &emitter) {
  emitter.take("sync");
  emitter.take("aligned");
  std::optional<StringRef> shape = emitter.takePrefix("m");
  if (!shape)
    return emitter.fail("expects a shape");
  if (!emitter.take("row") || !emitter.take("col"))
    return emitter.fail("expects '.row.col'");
  SmallVector<StringRef> types;
  for (StringRef part : emitter.takeRest())
    if (part != "kind::f8f6f4")
      types.push_back(part);
  if (types.size() != 4)
    return emitter.fail("expects the types of D, A, B and C");
  if (!emitter.expectOperands(4))
    return;
  mlir::Type i32 = emitter.getIntegerType(32);
  auto getRegisterType = [&](StringRef type) -> mlir::Type {
    if (type == "f32")
      return emitter.builder.getF32Type();
    return i32;
  };
  SmallVector<Value> operands;
  for (size_t index : {1, 2})
    llvm::append_range(operands, emitter.getValues(index, i32));
  llvm::append_range(operands, emitter.getValues(3, getRegisterType(types[3])));
  size_t count = emitter.getParts(0).size();
  std::string name =
      ("llvm.nvvm.mma.m" + *shape + ".row.col.").str() + llvm::join(types, ".");
  Value result = emitter.call(
      name, getRegisters(getRegisterType(types[0]), count), operands);
  setRegisters(result, count, emitter);
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

namespace {
/// The form of a wgmma.mma_async, by its name and constants.
struct WgmmaForm {
  int64_t n = 0, k = 0;
  NVVM::WGMMATypes d = NVVM::WGMMATypes::f32, a = d, b = d;
  bool isSaturated = false;

  bool is16Bits() const {
    return a == NVVM::WGMMATypes::f16 || a == NVVM::WGMMATypes::bf16;
  }
};
} // namespace

static std::optional<WgmmaForm> takeWgmmaForm(Emitter &emitter) {
  WgmmaForm form;
  emitter.take("sync");
  emitter.take("aligned");
  form.isSaturated = emitter.take("satfinite");
  std::optional<StringRef> shape = emitter.takePrefix("m64n");
  SmallVector<StringRef> types = emitter.takeRest();
  if (!shape || types.size() != 3)
    return std::nullopt;
  auto [n, k] = shape->split('k');
  NVVM::WGMMATypes *wanted[] = {&form.d, &form.a, &form.b};
  for (auto [name, type] : llvm::zip_equal(types, wanted)) {
    std::optional<NVVM::WGMMATypes> known = NVVM::symbolizeWGMMATypes(name);
    if (!known)
      return std::nullopt;
    *type = *known;
  }
  bool isShape = !n.getAsInteger(10, form.n) && !k.getAsInteger(10, form.k);
  return isShape ? std::optional(form) : std::nullopt;
}

/// The accumulators of operand 0, as one structure.
static Value packAccumulators(mlir::Type type, Emitter &emitter) {
  SmallVector<Value> values = emitter.getValues(0, type);
  Value packed = LLVM::UndefOp::create(emitter.builder, emitter.loc,
                                       getRegisters(type, values.size()));
  for (auto [index, value] : llvm::enumerate(values))
    packed = LLVM::InsertValueOp::create(emitter.builder, emitter.loc, packed,
                                         value, index);
  return packed;
}

/// Both matrices by descriptors: {d}, a, b, scale-d, scale-a, scale-b{,
/// transposed a, transposed b}.
static void emitSharedWgmma(const WgmmaForm &form, bool accumulates,
                            Emitter &emitter) {
  if (!emitter.expectOperands(form.is16Bits() ? 8 : 4, form.is16Bits() ? 8 : 6))
    return;
  MLIRContext *context = emitter.builder.getContext();
  mlir::Type type = emitter.getIntegerType(32);
  if (form.d == NVVM::WGMMATypes::f32)
    type = emitter.builder.getF32Type();
  auto getScale = [&](size_t index) {
    return index < emitter.size() && emitter.getConstant(index) == -1
               ? NVVM::WGMMAScaleIn::neg
               : NVVM::WGMMAScaleIn::one;
  };
  auto getLayout = [&](size_t index, NVVM::MMALayout plain,
                       NVVM::MMALayout transposed) {
    return form.is16Bits() && emitter.getConstant(index) ? transposed : plain;
  };
  Value accumulators = packAccumulators(type, emitter);
  using Layout = NVVM::MMALayout;
  Value result = NVVM::WgmmaMmaAsyncOp::create(
      emitter.builder, emitter.loc, accumulators.getType(), accumulators,
      emitter.getInteger(1, 64), emitter.getInteger(2, 64),
      NVVM::MMAShapeAttr::get(context, 64, form.n, form.k), form.a, form.b,
      form.d,
      accumulates ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero,
      getScale(4), getScale(5), getLayout(6, Layout::row, Layout::col),
      getLayout(7, Layout::col, Layout::row),
      form.isSaturated ? NVVM::MMAIntOverflowAttr::get(
                             context, NVVM::MMAIntOverflow::satfinite)
                       : NVVM::MMAIntOverflowAttr());
  setRegisters(result, emitter.getParts(0).size(), emitter);
}

/// A in registers, in the one form that the emulator supports.
static void emitRegisterWgmma(const WgmmaForm &form, bool accumulates,
                              Emitter &emitter) {
  RegisterWgmma wgmma;
  wgmma.n = form.n;
  wgmma.k = form.k;
  wgmma.typeD = form.d;
  wgmma.typeA = form.a;
  wgmma.typeB = form.b;
  wgmma.accumulates = accumulates;
  if (!emitter.expectOperands(form.is16Bits() ? 7 : 4, form.is16Bits() ? 7 : 6))
    return;
  for (size_t index : {4, 5})
    if (index < emitter.size() && emitter.getConstant(index) != 1)
      emitter.fail("with negated matrices has no lowering");
  wgmma.isMNMajorB = form.is16Bits() && emitter.getConstant(6);
  mlir::Type type = wgmma.getRegisterType(emitter.builder.getContext());
  SmallVector<Value> a = emitter.getValues(1, emitter.getIntegerType(32));
  SmallVector<Value> accumulators = emitter.getValues(0, type);
  if (a.size() != RegisterWgmma::kNumRegistersA ||
      static_cast<int64_t>(accumulators.size()) != wgmma.getNumRegisters())
    return emitter.fail("has a wrong number of registers");
  Value result = wgmma
                     .create(emitter.builder, emitter.loc, a,
                             emitter.getInteger(2, 64), accumulators)
                     .getRes();
  setRegisters(result, accumulators.size(), emitter);
}

static void emitWgmma(Emitter &emitter) {
  OpBuilder &builder = emitter.builder;
  if (emitter.take("mma_async")) {
    std::optional<WgmmaForm> form = takeWgmmaForm(emitter);
    if (!form)
      return emitter.fail("has a form that has no lowering");
    std::optional<bool> accumulates = emitter.getKnownPredicate(3);
    if (!accumulates)
      return emitter.fail("whose scale of D is not a constant has no lowering");
    if (emitter.get(1).kind == Operand::Kind::Vector)
      return emitRegisterWgmma(*form, *accumulates, emitter);
    return emitSharedWgmma(*form, *accumulates, emitter);
  }
  bool isFence = emitter.take("fence"), commits = emitter.take("commit_group");
  if (!isFence && !commits && !emitter.take("wait_group"))
    return emitter.fail("has a form that has no lowering");
  emitter.take("sync");
  emitter.take("aligned");
  if (isFence)
    NVVM::WgmmaFenceAlignedOp::create(builder, emitter.loc);
  else if (commits)
    NVVM::WgmmaGroupSyncAlignedOp::create(builder, emitter.loc);
  else
    NVVM::WgmmaWaitGroupSyncOp::create(builder, emitter.loc,
                                       emitter.getConstant(0));
}

bool ptx::emitMatrix(StringRef name, Emitter &emitter) {
  if (name == "ldmatrix")
    return emitLoadMatrix(emitter), true;
  if (name == "stmatrix")
    return emitStoreMatrix(emitter), true;
  if (name == "mma")
    return emitMma(emitter), true;
  if (name == "wgmma")
    return emitWgmma(emitter), true;
  return false;
}
