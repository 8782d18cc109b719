//===- BodySelection.cpp - Functions that choose their body ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodySelection.h"
#include "Object.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::kvcache::python;

static std::string nameBody(StringRef wrapper, StringRef level) {
  return (wrapper + "." + level).str();
}

std::vector<std::string> kvcache::python::makeBodies(llvm::Module &module,
                                                     StringRef level) {
  std::vector<std::string> wrappers;
  for (llvm::GlobalValue &value : module.global_values()) {
    if (value.isDeclaration() || value.hasLocalLinkage())
      continue;
    if (!value.getName().starts_with(kTVMFFIPrefix)) {
      value.setLinkage(llvm::GlobalValue::InternalLinkage);
      continue;
    }
    wrappers.push_back(value.getName().str());
    value.setName(nameBody(value.getName(), level));
    value.setVisibility(llvm::GlobalValue::HiddenVisibility);
  }
  return wrappers;
}

namespace {
/// Builds the wrappers of a library.
class SelectorBuilder {
public:
  explicit SelectorBuilder(llvm::Module &module)
      : module(module), builder(module.getContext()),
        pointer(builder.getPtrTy()),
        wrapperType(llvm::FunctionType::get(
            builder.getInt32Ty(),
            {pointer, pointer, builder.getInt32Ty(), pointer},
            /*isVarArg=*/false)),
        bodyType(llvm::StructType::get(pointer, pointer)) {}

  void build(StringRef wrapper, ArrayRef<std::string> levels);

private:
  /// The table of KVCacheBody, from the highest level on.
  llvm::GlobalVariable *buildBodies(StringRef wrapper,
                                    ArrayRef<std::string> levels);
  /// Returns the address of a text.
  llvm::Constant *buildText(StringRef text);

  llvm::Module &module;
  llvm::IRBuilder<> builder;
  llvm::PointerType *pointer;
  llvm::FunctionType *wrapperType;
  llvm::StructType *bodyType;
};
} // namespace

llvm::Constant *SelectorBuilder::buildText(StringRef text) {
  return builder.CreateGlobalString(text, "level", /*AddressSpace=*/0, &module);
}

llvm::GlobalVariable *
SelectorBuilder::buildBodies(StringRef wrapper, ArrayRef<std::string> levels) {
  llvm::SmallVector<llvm::Constant *> bodies;
  for (const std::string &level : llvm::reverse(levels)) {
    auto *body =
        llvm::Function::Create(wrapperType, llvm::GlobalValue::ExternalLinkage,
                               nameBody(wrapper, level), module);
    body->setVisibility(llvm::GlobalValue::HiddenVisibility);
    bodies.push_back(
        llvm::ConstantStruct::get(bodyType, {buildText(level), body}));
  }
  auto *type = llvm::ArrayType::get(bodyType, bodies.size());
  return new llvm::GlobalVariable(
      module, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
      llvm::ConstantArray::get(type, bodies), wrapper + ".bodies");
}

void SelectorBuilder::build(StringRef name, ArrayRef<std::string> levels) {
  llvm::GlobalVariable *bodies = buildBodies(name, levels);
  auto *selected = new llvm::GlobalVariable(
      module, pointer, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
      llvm::ConstantPointerNull::get(pointer), name + ".selected");
  auto *wrapper = llvm::Function::Create(
      wrapperType, llvm::GlobalValue::ExternalLinkage, name, module);
  auto addBlock = [&](const char *label) {
    return llvm::BasicBlock::Create(module.getContext(), label, wrapper);
  };
  llvm::BasicBlock *entry = addBlock("entry"), *select = addBlock("select"),
                   *found = addBlock("found"), *call = addBlock("call"),
                   *fail = addBlock("fail");

  // Threads that select at once store the same address.
  builder.SetInsertPoint(entry);
  llvm::Align alignment(module.getDataLayout().getPointerABIAlignment(0));
  llvm::LoadInst *known =
      builder.CreateAlignedLoad(pointer, selected, alignment);
  known->setAtomic(llvm::AtomicOrdering::Monotonic);
  builder.CreateCondBr(builder.CreateIsNull(known), select, call);

  builder.SetInsertPoint(select);
  llvm::FunctionCallee runtime = module.getOrInsertFunction(
      "kvcacheSelectBody", pointer, pointer, builder.getInt32Ty());
  llvm::Value *body =
      builder.CreateCall(runtime, {bodies, builder.getInt32(levels.size())});
  builder.CreateCondBr(builder.CreateIsNull(body), fail, found);

  builder.SetInsertPoint(found);
  llvm::Value *code =
      builder.CreateLoad(pointer, builder.CreateStructGEP(bodyType, body, 1));
  builder.CreateAlignedStore(code, selected, alignment)
      ->setAtomic(llvm::AtomicOrdering::Monotonic);
  builder.CreateBr(call);

  builder.SetInsertPoint(call);
  llvm::PHINode *callee = builder.CreatePHI(pointer, 2);
  callee->addIncoming(known, entry);
  callee->addIncoming(code, found);
  llvm::SmallVector<llvm::Value *> arguments(
      llvm::make_pointer_range(wrapper->args()));
  llvm::CallInst *result = builder.CreateCall(wrapperType, callee, arguments);
  result->setTailCallKind(llvm::CallInst::TCK_MustTail);
  builder.CreateRet(result);

  builder.SetInsertPoint(fail);
  builder.CreateRet(builder.getInt32(-1));
}

llvm::Expected<std::string>
kvcache::python::compileSelectors(ArrayRef<std::string> wrappers,
                                  ArrayRef<std::string> levels) {
  auto machine = createPortableMachine(/*level=*/"", /*optLevel=*/2);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  llvm::Module module("kvcache", context);
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  SelectorBuilder builder(module);
  for (const std::string &wrapper : wrappers)
    builder.build(wrapper, levels);
  return emitObject(module, **machine);
}
