//===- PackSharedMemory.cpp - Shared memory beyond 48 KB ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/GPU/KernelLaunches.h"
#include "kvcache/GPU/Passes.h"
#include "kvcache/GPU/SharedArrays.h"
#include "kvcache/IR/KVCacheDialect.h"
#include "kvcache/Support/FindOps.h"
#include "kvcache/Target/Chip.h"
#include "kvcache/Target/Registers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::kvcache {
#define GEN_PASS_DEF_PACKSHAREDMEMORY
#include "kvcache/GPU/Passes.h.inc"
} // namespace mlir::kvcache

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The maximum static shared memory of a kernel on every chip (CUDA C++
/// Programming Guide, Technical Specifications per Compute Capability).
constexpr int64_t kMaxStaticSharedMemory = 48 * 1024;

/// The alignment of dynamic shared memory: the need of the widest swizzle (PTX
/// ISA, Tensor swizzling modes).
constexpr int64_t kDynamicAlignment = 1024;

/// The name of its variable, unless it is in use.
constexpr StringLiteral kDynamicName{"kvcache_shared"};

bool isShared(Attribute space) {
  if (auto number = dyn_cast_if_present<IntegerAttr>(space))
    return number.getInt() ==
           static_cast<int64_t>(NVVM::NVVMMemorySpace::Shared);
  return gpu::GPUDialect::isWorkgroupMemoryAddressSpace(space);
}

//===----------------------------------------------------------------------===//
// What a kernel uses
//===----------------------------------------------------------------------===//

/// A variable in shared memory.
struct Variable {
  int64_t bytes;
  int64_t alignment;
  /// The declaration of a variable that can move, else null.
  memref::GlobalOp global;
  /// The offset in the common layout.
  int64_t offset = 0;
};

/// Lays variables out by decreasing alignment, and then in the given order.
/// Returns their total size in bytes; another order may need more.
int64_t layOut(MutableArrayRef<Variable> variables) {
  SmallVector<Variable *> order(llvm::make_pointer_range(variables));
  llvm::sort(order, [](Variable *a, Variable *b) {
    return std::tuple(-a->alignment, a) < std::tuple(-b->alignment, b);
  });
  int64_t end = 0;
  for (Variable *variable : order) {
    variable->offset = llvm::alignTo(end, variable->alignment);
    end = variable->offset + variable->bytes;
  }
  return end;
}

/// The shared memory of a kernel and of the functions that it calls.
class SharedMemory {
public:
  SharedMemory(gpu::GPUFuncOp kernel, const SymbolTable &symbols)
      : kernel(kernel), symbols(symbols) {}

  /// Finds the variables. Fails with a diagnostic if a variable has no size.
  LogicalResult collect() { return visit(kernel); }

  /// The minimum size of all variables.
  int64_t getBytes() const;

  /// The maximum size of all variables, for any order that ptxas may choose.
  int64_t getMaxBytes() const;

  gpu::GPUFuncOp kernel;
  /// The variables in the order of their first use.
  SmallVector<Variable> movable, fixed;
  /// The uses of the movable variables.
  SmallVector<memref::GetGlobalOp> uses;
  /// An op that uses dynamic shared memory, or null.
  Operation *dynamic = nullptr;

private:
  SmallVector<Variable> getAll() const;
  LogicalResult visit(FunctionOpInterface function);
  LogicalResult visitOp(Operation *op);
  LogicalResult addGlobal(Operation *user, memref::GlobalOp global);
  LogicalResult addGlobal(Operation *user, LLVM::GlobalOp global);
  LogicalResult addAttributions(gpu::GPUFuncOp function);

  const SymbolTable &symbols;
  DenseSet<Operation *> seen;
};

SmallVector<Variable> SharedMemory::getAll() const {
  SmallVector<Variable> all(movable);
  llvm::append_range(all, fixed);
  return all;
}

int64_t SharedMemory::getBytes() const {
  SmallVector<Variable> all = getAll();
  return layOut(all);
}

int64_t SharedMemory::getMaxBytes() const {
  SmallVector<Variable> all = getAll();
  int64_t alignment = 1, bytes = 0;
  for (const Variable &variable : all)
    alignment = std::max(alignment, variable.alignment);
  for (const Variable &variable : all)
    bytes += llvm::alignTo(variable.bytes, alignment);
  return bytes;
}

/// Returns the variable of a memref that `op` declares. The default alignment
/// is the one that LLVM may assume: that of the elements, or 16 bytes for large
/// arrays.
FailureOr<Variable> measure(Operation *op, MemRefType type, Attribute given) {
  Type element = type.getElementType();
  if (!element.isIntOrIndexOrFloat() &&
      !isa<VectorType, ComplexType, DataLayoutTypeInterface>(element))
    return op->emitOpError("expects elements of shared memory to have a size, "
                           "got ")
           << element;
  DataLayout layout = DataLayout::closest(op);
  int64_t alignment =
      std::max<int64_t>(16, layout.getTypeABIAlignment(element));
  if (auto number = dyn_cast_if_present<IntegerAttr>(given))
    alignment = std::max<int64_t>(1, number.getInt());
  int64_t bytes = type.getNumElements() * layout.getTypeSize(element);
  return Variable{bytes, alignment, /*global=*/{}};
}

LogicalResult SharedMemory::visit(FunctionOpInterface function) {
  if (!seen.insert(function).second)
    return success();
  if (auto gpuFunction = dyn_cast<gpu::GPUFuncOp>(*function))
    if (failed(addAttributions(gpuFunction)))
      return failure();
  WalkResult result = function.walk([&](Operation *op) {
    return op == function ? WalkResult::advance() : WalkResult(visitOp(op));
  });
  return failure(result.wasInterrupted());
}

LogicalResult SharedMemory::visitOp(Operation *op) {
  if (isa<gpu::DynamicSharedMemoryOp>(op) && !dynamic)
    dynamic = op;
  // PTX ISA, Size and alignment of mbarrier object.
  if (auto barriers = dyn_cast<nvgpu::MBarrierCreateOp>(op))
    fixed.push_back({8 * int64_t{barriers.getType().getNumBarriers()}, 8, {}});

  if (!isa<SymbolUserOpInterface>(op))
    return success();
  WalkResult result = op->getAttrDictionary().walk([&](FlatSymbolRefAttr ref) {
    Operation *symbol = symbols.lookup(ref.getAttr());
    if (auto function = dyn_cast_if_present<FunctionOpInterface>(symbol))
      return WalkResult(visit(function));
    if (auto global = dyn_cast_if_present<memref::GlobalOp>(symbol))
      return WalkResult(addGlobal(op, global));
    if (auto global = dyn_cast_if_present<LLVM::GlobalOp>(symbol))
      return WalkResult(addGlobal(op, global));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult SharedMemory::addGlobal(Operation *user,
                                      memref::GlobalOp global) {
  MemRefType type = global.getType();
  if (!isShared(type.getMemorySpace()))
    return success();
  if (global.isExternal() && type.getNumElements() == 0) {
    dynamic = dynamic ? dynamic : user;
    return success();
  }
  FailureOr<Variable> variable =
      measure(global, type, global.getAlignmentAttr());
  if (failed(variable))
    return failure();
  bool isMovable = global.isPrivate() && global.isUninitialized() &&
                   type.getLayout().isIdentity() &&
                   variable->alignment <= kDynamicAlignment;
  auto use = dyn_cast<memref::GetGlobalOp>(user);
  if (isMovable && use)
    uses.push_back(use);
  if (!seen.insert(global).second)
    return success();
  if (isMovable)
    variable->global = global;
  (isMovable ? movable : fixed).push_back(*variable);
  return success();
}

LogicalResult SharedMemory::addGlobal(Operation *user, LLVM::GlobalOp global) {
  if (global.getAddrSpace() !=
          static_cast<uint32_t>(NVVM::NVVMMemorySpace::Shared) ||
      !seen.insert(global).second)
    return success();
  DataLayout layout = DataLayout::closest(global);
  int64_t bytes = layout.getTypeSize(global.getType());
  int64_t alignment = global.getAlignment().value_or(
      layout.getTypeABIAlignment(global.getType()));
  if (bytes == 0)
    dynamic = dynamic ? dynamic : user;
  else
    fixed.push_back({bytes, alignment, /*global=*/{}});
  return success();
}

LogicalResult SharedMemory::addAttributions(gpu::GPUFuncOp function) {
  for (auto [index, memory] :
       llvm::enumerate(function.getWorkgroupAttributions())) {
    FailureOr<Variable> variable =
        measure(function, cast<MemRefType>(memory.getType()),
                function.getWorkgroupAttributionAttr(
                    index, LLVM::LLVMDialect::getAlignAttrName()));
    if (failed(variable))
      return failure();
    fixed.push_back(*variable);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct PackSharedMemory
    : kvcache::impl::PackSharedMemoryBase<PackSharedMemory> {
  using PackSharedMemoryBase::PackSharedMemoryBase;

  void runOnOperation() override {
    KernelLaunches launches(getOperation());
    llvm::MapVector<gpu::LaunchFuncOp, int64_t> needs;
    for (auto module :
         findOps<gpu::GPUModuleOp, FunctionOpInterface>(getOperation())) {
      SymbolTable symbols(module);
      for (gpu::GPUFuncOp kernel : module.getOps<gpu::GPUFuncOp>()) {
        if (!kernel.isKernel())
          continue;
        FailureOr<int64_t> bytes = pack(kernel, symbols);
        if (failed(bytes))
          return signalPassFailure();
        if (*bytes)
          for (gpu::LaunchFuncOp launch : launches.lookup(kernel))
            needs[launch] = std::max(needs[launch], *bytes);
      }
      eraseUnused(module);
    }
    for (auto [launch, bytes] : needs)
      if (failed(setDynamicSharedMemory(launch, bytes)))
        return signalPassFailure();
  }

private:
  /// Returns the bytes of dynamic shared memory that launches must pass.
  FailureOr<int64_t> pack(gpu::GPUFuncOp kernel, SymbolTable &symbols) {
    SharedMemory memory(kernel, symbols);
    if (failed(memory.collect()))
      return failure();
    // If the variables fit in some order, leave the layout to ptxas.
    if (memory.getMaxBytes() <= kMaxStaticSharedMemory ||
        (memory.getBytes() <= kMaxStaticSharedMemory &&
         (memory.dynamic || memory.movable.empty())))
      return 0;
    int64_t bytes = layOut(memory.movable);
    if (failed(check(memory, bytes)))
      return failure();
    if (const Chip *chip = getTargetChip(kernel);
        chip && !chip->fitsTwice(bytes))
      allowOneBlock(kernel);
    move(memory, symbols);
    kernel->setAttr(KVCacheDialect::kDynamicSharedMemoryAttr,
                    Builder(kernel.getContext()).getI64IntegerAttr(bytes));
    SmallVector<SharedArray> arrays;
    for (Variable &variable : memory.movable)
      arrays.push_back(
          {variable.global.getSymNameAttr(), variable.offset, variable.bytes});
    setSharedArrays(kernel, arrays);
    ++numPacked;
    return bytes;
  }

  static LogicalResult check(SharedMemory &memory, int64_t dynamicBytes) {
    gpu::GPUFuncOp kernel = memory.kernel;
    if (memory.dynamic)
      return memory.dynamic->emitOpError("expects kernel '")
             << kernel.getName() << "' to have at most "
             << kMaxStaticSharedMemory
             << " bytes of static shared memory beside this, which begins "
                "where the rest would, got "
             << memory.getBytes()
             << "; make this a tile or a memref.global of its size";
    int64_t fixedBytes = layOut(memory.fixed);
    if (fixedBytes > kMaxStaticSharedMemory)
      return kernel.emitOpError("expects at most ")
             << kMaxStaticSharedMemory
             << " bytes of shared memory in workgroup attributions, mbarriers "
                "and globals that aren't private and uninitialized, got "
             << fixedBytes;
    int64_t bytes = llvm::alignTo(fixedBytes, kDynamicAlignment) + dynamicBytes;
    const Chip *chip = getTargetChip(kernel);
    if (chip && bytes > chip->getSharedMemory())
      return kernel.emitOpError("needs ")
             << bytes << " bytes of shared memory, but " << chip->name
             << " has " << chip->getSharedMemory();
    for (memref::GetGlobalOp use : memory.uses)
      if (auto function = use->getParentOfType<FunctionOpInterface>();
          function != kernel)
        return use.emitOpError("expects function '")
               << function.getName() << "' to be inlined into kernel '"
               << kernel.getName() << "', whose shared memory is beyond "
               << kMaxStaticSharedMemory << " bytes";
    return success();
  }

  /// Replaces the variables by views of dynamic shared memory.
  static void move(SharedMemory &memory, SymbolTable &symbols) {
    DenseMap<StringAttr, int64_t> offsets;
    for (const Variable &variable : memory.movable) {
      memref::GlobalOp global = variable.global;
      offsets[global.getSymNameAttr()] = variable.offset;
    }
    memref::GlobalOp dynamic = getOrDeclareDynamic(symbols);
    for (memref::GetGlobalOp use : memory.uses) {
      OpBuilder builder(use);
      Location loc = use.getLoc();
      Value base = memref::GetGlobalOp::create(builder, loc, dynamic.getType(),
                                               dynamic.getSymName());
      MemRefType inSpace = MemRefType::Builder(dynamic.getType())
                               .setMemorySpace(use.getType().getMemorySpace());
      base =
          builder.createOrFold<memref::MemorySpaceCastOp>(loc, inSpace, base);
      Value offset = arith::ConstantIndexOp::create(
          builder, loc, offsets.lookup(use.getNameAttr().getAttr()));
      Value view = memref::ViewOp::create(builder, loc, use.getType(), base,
                                          offset, ValueRange{});
      use.replaceAllUsesWith(view);
      use.erase();
    }
  }

  /// Returns the external variable of size zero for dynamic shared memory.
  static memref::GlobalOp getOrDeclareDynamic(SymbolTable &symbols) {
    auto module = cast<gpu::GPUModuleOp>(symbols.getOp());
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    auto shared = gpu::AddressSpaceAttr::get(builder.getContext(),
                                             gpu::AddressSpace::Workgroup);
    auto type = MemRefType::get({0}, builder.getI8Type(),
                                MemRefLayoutAttrInterface(), shared);
    for (memref::GlobalOp global : module.getOps<memref::GlobalOp>())
      if (global.isExternal() && global.getType() == type &&
          global.getAlignment() == kDynamicAlignment)
        return global;
    auto global = memref::GlobalOp::create(
        builder, module.getLoc(), kDynamicName, /*sym_visibility=*/{}, type,
        /*initial_value=*/{}, /*constant=*/false,
        builder.getI64IntegerAttr(kDynamicAlignment));
    symbols.insert(global);
    return global;
  }

  static void eraseUnused(gpu::GPUModuleOp module) {
    SmallVector<memref::GlobalOp> globals(module.getOps<memref::GlobalOp>());
    llvm::erase_if(globals, [](memref::GlobalOp global) {
      return !global.isPrivate() ||
             !isShared(global.getType().getMemorySpace());
    });
    if (globals.empty())
      return;
    DenseSet<Attribute> used;
    module.walk([&](memref::GetGlobalOp use) {
      used.insert(use.getNameAttr().getAttr());
    });
    for (memref::GlobalOp global : globals)
      if (!used.contains(global.getSymNameAttr()))
        global.erase();
  }

  static LogicalResult setDynamicSharedMemory(gpu::LaunchFuncOp launch,
                                              int64_t bytes) {
    Value given = launch.getDynamicSharedMemorySize();
    if (!given) {
      OpBuilder builder(launch);
      launch.getDynamicSharedMemorySizeMutable().assign(
          arith::ConstantIntOp::create(builder, launch.getLoc(), bytes,
                                       /*width=*/32));
      return success();
    }
    APInt constant;
    bool isConstant = matchPattern(given, m_ConstantInt(&constant));
    if (isConstant && constant.getSExtValue() >= bytes)
      return success();
    InFlightDiagnostic error =
        launch.emitOpError("expects 'dynamicSharedMemorySize' to be a constant "
                           "of at least ")
        << bytes << ", which kernel '" << launch.getKernelName().getValue()
        << "' needs";
    if (isConstant)
      error << ", got " << constant.getSExtValue();
    return error;
  }
};

} // namespace
