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

using Position = llvm::SmallVector<unsigned, 2>;

static bool isAggregate(llvm::Type *type) { return type->isAggregateType(); }

/// Finds the fields of an aggregate that are none themselves.
static void findFields(llvm::Type *type, const Position &at,
                       llvm::SmallVectorImpl<Position> &fields) {
  if (!isAggregate(type)) {
    fields.push_back(at);
    return;
  }
  uint64_t count = type->isStructTy() ? type->getStructNumElements()
                                      : type->getArrayNumElements();
  for (unsigned index = 0; index < count; ++index) {
    Position field = at;
    field.push_back(index);
    findFields(llvm::ExtractValueInst::getIndexedType(type, index), field,
               fields);
  }
}

static llvm::Value *getAddress(llvm::IRBuilder<> &builder, llvm::Type *type,
                               llvm::Value *pointer,
                               llvm::ArrayRef<unsigned> position) {
  llvm::SmallVector<llvm::Value *> indices = {builder.getInt32(0)};
  for (unsigned index : position)
    indices.push_back(builder.getInt32(index));
  return builder.CreateInBoundsGEP(type, pointer, indices);
}

/// Stores the fields of an aggregate one by one.
static void splitStore(llvm::StoreInst &store) {
  llvm::IRBuilder<> builder(&store);
  llvm::Value *stored = store.getValueOperand();
  llvm::SmallVector<Position> fields;
  findFields(stored->getType(), {}, fields);
  for (const Position &field : fields) {
    llvm::Value *value = llvm::FindInsertedValue(stored, field);
    if (!value)
      value = builder.CreateExtractValue(stored, field);
    builder.CreateAlignedStore(value,
                               getAddress(builder, stored->getType(),
                                          store.getPointerOperand(), field),
                               llvm::Align());
  }
  store.eraseFromParent();
  llvm::RecursivelyDeleteTriviallyDeadInstructions(stored);
}

/// Loads the fields of an aggregate one by one, if it is not used as a whole.
static void splitLoad(llvm::LoadInst &load) {
  if (llvm::any_of(load.users(), [](llvm::User *user) {
        return !llvm::isa<llvm::ExtractValueInst>(user) ||
               isAggregate(user->getType());
      }))
    return;
  llvm::IRBuilder<> builder(&load);
  for (llvm::User *user : llvm::make_early_inc_range(load.users())) {
    auto *extract = llvm::cast<llvm::ExtractValueInst>(user);
    extract->replaceAllUsesWith(builder.CreateAlignedLoad(
        extract->getType(),
        getAddress(builder, load.getType(), load.getPointerOperand(),
                   extract->getIndices()),
        llvm::Align()));
    extract->eraseFromParent();
  }
  load.eraseFromParent();
}

static void splitAggregates(llvm::Function &function) {
  llvm::SmallVector<llvm::Instruction *> accesses;
  for (llvm::Instruction &instruction : llvm::instructions(function)) {
    auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
    auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    if ((store && store->isSimple() &&
         isAggregate(store->getValueOperand()->getType())) ||
        (load && load->isSimple() && isAggregate(load->getType())))
      accesses.push_back(&instruction);
  }
  for (llvm::Instruction *access : accesses) {
    if (auto *store = llvm::dyn_cast<llvm::StoreInst>(access))
      splitStore(*store);
    else
      splitLoad(*llvm::cast<llvm::LoadInst>(access));
  }
}

//===----------------------------------------------------------------------===//
// Borders
//===----------------------------------------------------------------------===//

/// Whether the fast instruction selector leaves an instruction to the slow one.
/// It selects scalar instructions; a call that it can't select costs only
/// itself.
static bool isSlowToSelect(const llvm::Instruction &instruction) {
  if (llvm::isa<llvm::CallBase, llvm::PHINode, llvm::ExtractValueInst>(
          instruction))
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
      if (llvm::isa<llvm::AllocaInst>(instruction))
        begin = std::next(instruction.getIterator());
    auto borders = findBorders(begin, block.end());
    // From the last one on, so that the others stay in this block.
    for (llvm::Instruction *border : llvm::reverse(borders)) {
      auto *call =
          llvm::dyn_cast_or_null<llvm::CallInst>(border->getPrevNode());
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
