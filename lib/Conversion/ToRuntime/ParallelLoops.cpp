//===- ParallelLoops.cpp - Parallel loops of the host on threads ----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Conversion/Passes.h"
#include "kvcache/Support/IndexBuilder.h"
#include "kvcache/Support/Loops.h"
#include "kvcache/Support/RuntimeCalls.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_LOWERPARALLELLOOPS
#include "kvcache/Conversion/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The values of the code around a loop that its body uses.
struct Captures {
  /// Constants, and memory of the frame that only the loop uses, with its
  /// views: each call of the body has its own.
  SetVector<Operation *> cloned;
  /// The values that the threads share.
  SetVector<Value> shared;
};

/// The dimensions of a loop: `first + i * step` for each i below `count`.
struct Dimension {
  Value first, step, count;
};

} // namespace

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

/// The op that allocates what a value is a view of, or null.
static Operation *findAllocation(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<memref::AllocOp, memref::AllocaOp>(op))
      return op;
    auto view = dyn_cast<ViewLikeOpInterface>(op);
    if (!view)
      return nullptr;
    value = view.getViewSource();
  }
  return nullptr;
}

/// Adds an allocation and its views outside of a loop. False if something else
/// outside uses them.
static bool addIfOnlyUsedIn(scf::ParallelOp loop, Operation *op,
                            SetVector<Operation *> &found) {
  found.insert(op);
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return loop->isAncestor(user) || isa<memref::DeallocOp>(user) ||
           (isa<ViewLikeOpInterface>(user) &&
            addIfOnlyUsedIn(loop, user, found));
  });
}

/// Fails where iterations write to memory of the heap that only the loop uses:
/// in threads they would write over each other.
static LogicalResult findCaptures(SetVector<Value> used, scf::ParallelOp loop,
                                  Captures &captures) {
  for (size_t i = 0; i < used.size(); ++i) {
    Operation *op = used[i].getDefiningOp();
    SetVector<Operation *> cloned;
    if (op && op->hasTrait<OpTrait::ConstantLike>())
      cloned.insert(op);
    else if (Operation *memory = findAllocation(used[i]);
             !memory || !addIfOnlyUsedIn(loop, memory, cloned))
      cloned.clear();
    else if (isa<memref::AllocOp>(memory))
      return failure();
    if (cloned.empty())
      captures.shared.insert(used[i]);
    for (Operation *each : cloned) {
      captures.cloned.insert(each);
      for (Value operand : each->getOperands())
        used.insert(operand);
    }
  }
  // An operand of a view may be a view.
  captures.shared.remove_if([&](Value value) {
    return captures.cloned.contains(value.getDefiningOp());
  });
  captures.cloned = topologicalSort(captures.cloned);
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static Value castTo(OpBuilder &builder, Location loc, Type type, Value value) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(builder, loc, type, value)
      .getResult(0);
}

static SmallVector<Dimension> getDimensions(const IndexBuilder &b,
                                            scf::ParallelOp loop) {
  SmallVector<Dimension> dimensions;
  for (auto [first, end, step] : llvm::zip_equal(
           loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
    Value count = b.builder.createOrFold<arith::CeilDivUIOp>(
        b.loc, b.sub(end, first), step);
    Value isEmpty = b.builder.createOrFold<arith::CmpIOp>(
        b.loc, arith::CmpIPredicate::sle, end, first);
    count = b.builder.createOrFold<arith::SelectOp>(b.loc, isEmpty, b.index(0),
                                                    count);
    dimensions.push_back({first, step, count});
  }
  return dimensions;
}

namespace {

/// Makes functions of the bodies of loops, and calls of the runtime of loops.
class Outliner {
public:
  Outliner(ModuleOp module, int32_t threads)
      : runtime(module), converter(module.getContext()), threads(threads) {}

  /// Whether the loop is a call now.
  bool outline(scf::ParallelOp loop);

private:
  /// A function of a pointer to what threads share, the first iteration and the
  /// end.
  func::FuncOp createBody(scf::ParallelOp loop, const Captures &captures,
                          ArrayRef<Dimension> dimensions,
                          LLVM::LLVMStructType type);
  /// Stores what threads share, and calls the runtime.
  void createCall(scf::ParallelOp loop, const Captures &captures,
                  ArrayRef<Dimension> dimensions, LLVM::LLVMStructType type,
                  func::FuncOp body);

  RuntimeCalls runtime;
  LLVMTypeConverter converter;
  int32_t threads;
};

} // namespace

bool Outliner::outline(scf::ParallelOp loop) {
  OpBuilder builder(loop);
  SetVector<Value> used;
  getUsedValuesDefinedAbove(loop.getRegion(), used);
  used.insert_range(loop.getLowerBound());
  used.insert_range(loop.getStep());
  Captures captures;
  if (failed(findCaptures(used, loop, captures)))
    return false;
  SmallVector<Dimension> dimensions =
      getDimensions(IndexBuilder(builder, loop.getLoc()), loop);
  // The first dimension varies slowest: nothing is divided by its count.
  for (const Dimension &dimension : ArrayRef(dimensions).drop_front())
    captures.shared.insert(dimension.count);
  SmallVector<Type> fields;
  for (Value value : captures.shared)
    if (Type type = converter.convertType(value.getType()))
      fields.push_back(type);
  if (fields.size() != captures.shared.size())
    return false;
  auto type = LLVM::LLVMStructType::getLiteral(loop.getContext(), fields);
  func::FuncOp body = createBody(loop, captures, dimensions, type);
  createCall(loop, captures, dimensions, type, body);
  loop.erase();
  return true;
}

func::FuncOp Outliner::createBody(scf::ParallelOp loop,
                                  const Captures &captures,
                                  ArrayRef<Dimension> dimensions,
                                  LLVM::LLVMStructType type) {
  Location loc = loop.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(runtime.getModule().getBody());
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type index = builder.getIndexType();
  auto function = func::FuncOp::create(
      builder, loc,
      (loop->getParentOfType<func::FuncOp>().getName() + "_loop").str(),
      builder.getFunctionType({pointer, index, index}, {}));
  function.setPrivate();
  auto linkage =
      LLVM::LinkageAttr::get(builder.getContext(), LLVM::Linkage::Internal);
  function->setAttr("llvm.linkage", linkage);
  runtime.getSymbols().insert(function);
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);

  IRMapping mapping;
  if (!captures.shared.empty()) {
    Value fields =
        LLVM::LoadOp::create(builder, loc, type, entry->getArgument(0));
    for (auto [i, value] : llvm::enumerate(captures.shared)) {
      Value field = LLVM::ExtractValueOp::create(builder, loc, fields, i);
      mapping.map(value, castTo(builder, loc, value.getType(), field));
    }
  }
  for (Operation *op : captures.cloned)
    builder.clone(*op, mapping);
  IndexBuilder b(builder, loc);
  b.loop(
      entry->getArgument(1), entry->getArgument(2), b.index(1), [&](Value i) {
        for (size_t d = dimensions.size(); d-- > 0;) {
          const Dimension &dimension = dimensions[d];
          Value count = d ? mapping.lookup(dimension.count) : Value();
          Value inDimension = d ? b.rem(i, count) : i;
          Value id = b.add(mapping.lookup(dimension.first),
                           b.mul(inDimension, mapping.lookup(dimension.step)));
          mapping.map(loop.getInductionVars()[d], id);
          if (d)
            i = b.div(i, count);
        }
        for (Operation &op : loop.getBody()->without_terminator())
          builder.clone(op, mapping);
      });
  copyLoopAnnotation(loop, &entry->back());
  func::ReturnOp::create(builder, loc);
  return function;
}

void Outliner::createCall(scf::ParallelOp loop, const Captures &captures,
                          ArrayRef<Dimension> dimensions,
                          LLVM::LLVMStructType type, func::FuncOp body) {
  Location loc = loop.getLoc();
  OpBuilder builder(loop);
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  OpBuilder atEntry = OpBuilder::atBlockBegin(
      &loop->getParentOfType<func::FuncOp>().getBody().front());
  Value one = LLVM::ConstantOp::create(atEntry, loc, atEntry.getI64Type(), 1);
  Value memory = LLVM::AllocaOp::create(atEntry, loc, pointer, type, one);
  FieldBuilder fields(builder, loc, type.getBody());
  for (auto [i, value] : llvm::enumerate(captures.shared))
    fields.set(castTo(builder, loc, type.getBody()[i], value), i);
  LLVM::StoreOp::create(builder, loc, fields.get(), memory);

  IndexBuilder b(builder, loc);
  Value total = dimensions.front().count;
  for (const Dimension &dimension : dimensions.drop_front())
    total = b.mul(total, dimension.count);
  Value iterations =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), total);
  Value number =
      LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), threads);
  Value function = func::ConstantOp::create(
      builder, loc, body.getFunctionType(), body.getName());
  runtime.call(
      builder, loc, "kvcacheParallelFor", /*resultType=*/{},
      {iterations, number, castTo(builder, loc, pointer, function), memory});
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// Whether a loop is an outermost one of the host, without results, kernels and
/// parts of them.
static bool isForThreads(scf::ParallelOp loop) {
  if (!loop->getParentOfType<func::FuncOp>() ||
      loop->getParentOfType<scf::ParallelOp>() ||
      loop->getParentOfType<gpu::LaunchOp>() ||
      loop->getParentOfType<gpu::GPUModuleOp>() || loop.getNumResults() > 0)
    return false;
  WalkResult search = loop.walk([](Operation *op) {
    bool isGPU = isa_and_present<gpu::GPUDialect>(op->getDialect());
    return isGPU ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !search.wasInterrupted();
}

namespace {

struct LowerParallelLoops
    : kvcache::impl::LowerParallelLoopsBase<LowerParallelLoops> {
  using LowerParallelLoopsBase::LowerParallelLoopsBase;

  void runOnOperation() override {
    if (threads < 1) {
      getOperation().emitError("expects 'threads' to be positive, got ")
          << threads.getValue();
      return signalPassFailure();
    }
    if (threads == 1)
      return markAllAnalysesPreserved();
    SmallVector<scf::ParallelOp> loops;
    getOperation().walk([&](scf::ParallelOp loop) {
      if (loop->getParentOfType<ModuleOp>() == getOperation() &&
          isForThreads(loop))
        loops.push_back(loop);
    });
    Outliner outliner(getOperation(), threads);
    for (scf::ParallelOp loop : loops)
      if (outliner.outline(loop))
        ++numOutlined;
  }
};

} // namespace
