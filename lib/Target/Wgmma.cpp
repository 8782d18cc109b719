//===- Wgmma.cpp - wgmma with a matrix in registers -----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/Wgmma.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::kvcache;

static constexpr StringLiteral kMnemonic = "wgmma.mma_async.sync.aligned.";

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static bool isInteger(NVVM::WGMMATypes type) {
  return type == NVVM::WGMMATypes::s8 || type == NVVM::WGMMATypes::u8;
}

/// `{$4, $5, $6}`, or with equal parts otherwise.
static std::string listNumbers(StringRef prefix, int64_t first, int64_t count) {
  auto numbers =
      llvm::map_range(llvm::seq(first, first + count), [&](int64_t number) {
        return (prefix + Twine(number)).str();
      });
  return llvm::join(numbers, ", ");
}

/// PTX ISA, "wgmma.mma_async", with A in registers: integers have no signs, and
/// only elements of 16 bits a transposed B.
static std::string getText(const RegisterWgmma &form) {
  int64_t count = form.getNumRegisters();
  constexpr int64_t numA = RegisterWgmma::kNumRegistersA;
  bool hasMajor = form.typeA == NVVM::WGMMATypes::f16 ||
                  form.typeA == NVVM::WGMMATypes::bf16;
  StringRef signs = isInteger(form.typeA) ? "" : ", 1, 1";
  StringRef major = !hasMajor ? "" : form.isMNMajorB ? ", 1" : ", 0";
  return llvm::formatv(
             "{{\n.reg .pred p;\nsetp.ne.b32 p, {0}, 0;\n{1}"
             "m64n{2}k{3}.{4}.{5}.{6} {{{7}}, {{{8}}, ${9}, p{10}"
             "{11};\n}",
             form.accumulates ? 1 : 0, kMnemonic, form.n, form.k,
             NVVM::stringifyWGMMATypes(form.typeD),
             NVVM::stringifyWGMMATypes(form.typeA),
             NVVM::stringifyWGMMATypes(form.typeB), listNumbers("$", 0, count),
             listNumbers("$", count, numA), count + numA, signs, major)
      .str();
}

/// The registers of D are those of the accumulators.
static std::string getConstraints(const RegisterWgmma &form) {
  int64_t count = form.getNumRegisters();
  StringRef output = form.typeD == NVVM::WGMMATypes::f32 ? "=f," : "=r,";
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += output;
  for (unsigned i = 0; i < RegisterWgmma::kNumRegistersA; ++i)
    text += "r,";
  text += "l";
  for (int64_t i = 0; i < count; ++i)
    text += "," + std::to_string(i);
  return text;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static LLVM::InlineAsmOp createAssembly(OpBuilder &builder, Location loc,
                                        Type result, ValueRange operands,
                                        StringRef text, StringRef constraints) {
  return LLVM::InlineAsmOp::create(
      builder, loc, result, operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None, /*asm_dialect=*/{}, /*operand_attrs=*/{});
}

Type RegisterWgmma::getRegisterType(MLIRContext *context) const {
  if (typeD == NVVM::WGMMATypes::f32)
    return Float32Type::get(context);
  return IntegerType::get(context, 32);
}

LLVM::InlineAsmOp RegisterWgmma::create(OpBuilder &builder, Location loc,
                                        ValueRange a, Value descriptorB,
                                        ValueRange accumulators) const {
  MLIRContext *context = builder.getContext();
  SmallVector<Type> fields(getNumRegisters(), getRegisterType(context));
  SmallVector<Value> operands(a);
  operands.push_back(descriptorB);
  llvm::append_range(operands, accumulators);
  return createAssembly(builder, loc,
                        LLVM::LLVMStructType::getLiteral(context, fields),
                        operands, getText(*this), getConstraints(*this));
}

/// The parts between the dots: shape, types of D, A and B.
static std::optional<RegisterWgmma> parse(StringRef text) {
  StringRef name = text.substr(text.find(kMnemonic));
  if (!name.consume_front(kMnemonic))
    return std::nullopt;
  SmallVector<StringRef> parts;
  name.take_until(llvm::isSpace).split(parts, '.');
  RegisterWgmma form;
  StringRef shape = parts.front();
  if (parts.size() != 4 || !shape.consume_front("m64n") ||
      shape.consumeInteger(10, form.n) || !shape.consume_front("k") ||
      shape.getAsInteger(10, form.k) || form.n < 8 || form.n > 256)
    return std::nullopt;
  NVVM::WGMMATypes *types[] = {&form.typeD, &form.typeA, &form.typeB};
  for (auto [part, type] : llvm::zip_equal(llvm::drop_begin(parts), types)) {
    std::optional<NVVM::WGMMATypes> known = NVVM::symbolizeWGMMATypes(part);
    if (!known)
      return std::nullopt;
    *type = *known;
  }
  form.accumulates = text.contains("p, 1, 0;");
  form.isMNMajorB = text.contains("p, 1, 1, 1;");
  return form;
}

std::optional<RegisterWgmma> RegisterWgmma::get(LLVM::InlineAsmOp op) {
  std::optional<RegisterWgmma> form = parse(op.getAsmString());
  // Any other text, or any other operands, are another instruction.
  if (!form || op.getAsmString() != getText(*form) ||
      op.getConstraints() != getConstraints(*form))
    return std::nullopt;
  int64_t count = form->getNumRegisters();
  if (op.getNumOperands() != count + kNumRegistersA + 1)
    return std::nullopt;
  return form;
}

SmallVector<Value> kvcache::createRegisterFence(OpBuilder &builder,
                                                Location loc,
                                                ValueRange registers) {
  std::string outputs, inputs;
  for (auto [number, value] : llvm::enumerate(registers)) {
    outputs += value.getType().isF32() ? "=f," : "=r,";
    inputs += (number ? "," : "") + std::to_string(number);
  }
  SmallVector<Type> types(registers.getTypes());
  bool isOne = types.size() == 1;
  Type result =
      isOne ? types.front()
            : LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
  Value fenced =
      createAssembly(builder, loc, result, registers, "", outputs + inputs)
          .getRes();
  if (isOne)
    return {fenced};
  SmallVector<Value> values;
  for (size_t i = 0; i < types.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, loc, fenced, i));
  return values;
}

bool kvcache::isRegisterFence(LLVM::InlineAsmOp op) {
  if (!op.getAsmString().empty() || !op.getRes() || op.getNumOperands() == 0)
    return false;
  SmallVector<StringRef> constraints;
  op.getConstraints().split(constraints, ',');
  size_t count = op.getNumOperands();
  if (constraints.size() != 2 * count)
    return false;
  for (size_t i = 0; i < count; ++i)
    if (!constraints[i].starts_with("=") ||
        constraints[count + i] != std::to_string(i))
      return false;
  auto fields = dyn_cast<LLVM::LLVMStructType>(op.getRes().getType());
  return count == 1
             ? op.getRes().getType() == op.getOperand(0).getType()
             : fields && llvm::equal(fields.getBody(), op.getOperandTypes());
}
