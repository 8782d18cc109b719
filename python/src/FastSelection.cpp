//===- FastSelection.cpp - Code that is selected fast ---------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FastSelection.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace mlir::kvcache::python;

//===----------------------------------------------------------------------===//
// Aggregates
//===----------------------------------------------------------------------===//

namespace {
/// A field of an aggregate that is none itself.
struct Field {
  llvm::Type *type;
  llvm::SmallVector<unsigned, 2> position;
  uint64_t offset;
};
} // namespace

static bool isAggregate(llvm::Type *type) { return type->isAggregateType(); }

static void findFields(const llvm::DataLayout &layout, const Field &at,
                       llvm::SmallVectorImpl<Field> &fields) {
  if (!isAggregate(at.type)) {
    fields.push_back(at);
    return;
  }
  auto visit = [&](unsigned index, llvm::Type *type, uint64_t offset) {
    Field field{type, at.position, at.offset + offset};
    field.position.push_back(index);
    findFields(layout, field, fields);
  };
  if (auto *record = dyn_cast<llvm::StructType>(at.type)) {
    for (auto [index, type] : llvm::enumerate(record->elements()))
      visit(index, type,
            layout.getStructLayout(record)->getElementOffset(index));
    return;
  }
  auto *array = cast<llvm::ArrayType>(at.type);
  uint64_t bytes = layout.getTypeAllocSize(array->getElementType());
  for (unsigned index = 0; index < array->getNumElements(); ++index)
    visit(index, array->getElementType(), index * bytes);
}

static llvm::SmallVector<Field> findFields(const llvm::DataLayout &layout,
                                           llvm::Type *type) {
  llvm::SmallVector<Field> fields;
  findFields(layout, {type, {}, 0}, fields);
  return fields;
}

/// Stores the fields of an aggregate one by one.
static void splitStore(llvm::StoreInst &store) {
  llvm::IRBuilder<> builder(&store);
  llvm::Value *stored = store.getValueOperand();
  for (const Field &field :
       findFields(store.getDataLayout(), stored->getType())) {
    llvm::Value *value = llvm::FindInsertedValue(stored, field.position);
    if (!value)
      value = builder.CreateExtractValue(stored, field.position);
    builder.CreateAlignedStore(
        value,
        builder.CreateConstInBoundsGEP1_64(
            builder.getInt8Ty(), store.getPointerOperand(), field.offset),
        llvm::commonAlignment(store.getAlign(), field.offset));
  }
  store.eraseFromParent();
  llvm::RecursivelyDeleteTriviallyDeadInstructions(stored);
}

/// Loads the fields of an aggregate one by one, if nobody wants it as a whole.
static void splitLoad(llvm::LoadInst &load) {
  if (llvm::any_of(load.users(), [](llvm::User *user) {
        return !isa<llvm::ExtractValueInst>(user) ||
               isAggregate(user->getType());
      }))
    return;
  llvm::IRBuilder<> builder(&load);
  for (const Field &field : findFields(load.getDataLayout(), load.getType())) {
    llvm::Value *value = nullptr;
    for (llvm::User *user : llvm::make_early_inc_range(load.users())) {
      auto *extract = cast<llvm::ExtractValueInst>(user);
      if (extract->getIndices() != llvm::ArrayRef(field.position))
        continue;
      if (!value)
        value = builder.CreateAlignedLoad(
            field.type,
            builder.CreateConstInBoundsGEP1_64(
                builder.getInt8Ty(), load.getPointerOperand(), field.offset),
            llvm::commonAlignment(load.getAlign(), field.offset));
      extract->replaceAllUsesWith(value);
      extract->eraseFromParent();
    }
  }
  load.eraseFromParent();
}

static void splitAggregates(llvm::Function &function) {
  llvm::SmallVector<llvm::Instruction *> accesses;
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    auto *store = dyn_cast<llvm::StoreInst>(&instruction);
    auto *load = dyn_cast<llvm::LoadInst>(&instruction);
    if ((store && store->isSimple() &&
         isAggregate(store->getValueOperand()->getType())) ||
        (load && load->isSimple() && isAggregate(load->getType())))
      accesses.push_back(&instruction);
  }
  for (llvm::Instruction *access : accesses) {
    if (auto *store = dyn_cast<llvm::StoreInst>(access))
      splitStore(*store);
    else
      splitLoad(*cast<llvm::LoadInst>(access));
  }
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

/// Whether the fast instruction selector leaves an instruction to the slow one.
/// It selects scalar instructions; a call that it can't select costs only
/// itself.
static bool isSlowToSelect(const llvm::Instruction &instruction) {
  if (isa<llvm::CallBase, llvm::PHINode, llvm::ExtractValueInst>(instruction))
    return false;
  auto isSlow = [](const llvm::Value *value) {
    llvm::Type *type = value->getType();
    return type->isAggregateType() || type->isVectorTy();
  };
  return isSlow(&instruction) ||
         llvm::any_of(instruction.operand_values(), isSlow);
}

/// Returns where a block changes between runs of slow and of fast instructions.
/// A few fast ones among slow ones belong to their run.
static llvm::SmallVector<llvm::Instruction *>
findBorders(llvm::BasicBlock::iterator begin, llvm::BasicBlock::iterator end) {
  constexpr unsigned minFast = 8;
  llvm::SmallVector<llvm::Instruction *> borders;
  llvm::Instruction *firstFast = nullptr;
  unsigned numFast = minFast;
  for (llvm::Instruction &instruction : llvm::make_range(begin, end)) {
    if (!isSlowToSelect(instruction)) {
      if (numFast++ == 0)
        firstFast = &instruction;
      continue;
    }
    if (numFast >= minFast) {
      if (firstFast)
        borders.push_back(firstFast);
      borders.push_back(&instruction);
    }
    firstFast = nullptr;
    numFast = 0;
  }
  if (firstFast && numFast >= minFast)
    borders.push_back(firstFast);
  return borders;
}

/// Splits blocks around instructions that are slow to select. The fast
/// selector goes through a block from its end, and leaves all that is before an
/// instruction that it can't select to the slow one.
static void isolateSlowInstructions(llvm::Function &function) {
  for (llvm::BasicBlock &block : llvm::make_early_inc_range(function)) {
    auto begin = block.getFirstNonPHIIt();
    // Variables have fixed places on the stack only in the first block.
    for (llvm::Instruction &instruction : block)
      if (isa<llvm::AllocaInst>(instruction))
        begin = std::next(instruction.getIterator());
    auto borders = findBorders(begin, block.end());
    // From the last one on, so that the others stay in this block.
    for (llvm::Instruction *border : llvm::reverse(borders)) {
      auto *call = dyn_cast_or_null<llvm::CallInst>(border->getPrevNode());
      if (border != &block.front() && !(call && call->isMustTailCall()))
        block.splitBasicBlock(border);
    }
  }
}

void mlir::kvcache::python::prepareForFastSelection(llvm::Module &module) {
  for (llvm::Function &function : module) {
    splitAggregates(function);
    isolateSlowInstructions(function);
  }
}
