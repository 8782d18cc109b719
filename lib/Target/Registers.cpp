//===- Registers.cpp - Registers of the threads of a kernel ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/Registers.h"

#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::kvcache;

bool kvcache::hasSetMaxRegisters(const Chip &chip) {
  constexpr unsigned hopper = 90;
  return chip.computeCapability >= hopper && chip.variant != Variant::Base;
}

int64_t kvcache::getMaxRegisters(int64_t threads, int64_t blocks) {
  constexpr int64_t warp = 32, mostOfThread = 256;
  if (threads > kRegistersOfSM || blocks > kRegistersOfSM)
    return 0;
  int64_t warpThreads = llvm::alignTo(threads, warp) * blocks;
  return llvm::alignDown(std::min(kRegistersOfSM / warpThreads, mostOfThread),
                         kRegisterUnit);
}

/// Returns an attribute of a kernel that is a positive number.
static std::optional<int64_t> getNumber(Operation *kernel, StringRef name) {
  auto attribute = kernel->getAttrOfType<IntegerAttr>(name);
  if (!attribute || !attribute.getValue().isSignedIntN(32) ||
      !attribute.getValue().isStrictlyPositive())
    return std::nullopt;
  return attribute.getValue().getSExtValue();
}

/// Returns the threads of a block of a kernel, if they are known.
static std::optional<int64_t> getThreads(Operation *kernel) {
  SmallVector<StringRef> names{NVVM::NVVMDialect::getReqntidAttrName(),
                               NVVM::NVVMDialect::getMaxntidAttrName()};
  if (auto function = dyn_cast<gpu::GPUFuncOp>(kernel))
    names.push_back(function.getKnownBlockSizeAttrName());
  for (StringRef name : names)
    if (auto sides = kernel->getAttrOfType<DenseI32ArrayAttr>(name))
      return llvm::product_of(sides.asArrayRef(), int64_t(1));
  return std::nullopt;
}

std::optional<int64_t> kvcache::getInitialRegisters(Operation *kernel) {
  if (auto most = getNumber(kernel, NVVM::NVVMDialect::getMaxnregAttrName()))
    return llvm::alignTo(*most, kRegisterUnit);
  auto blocks = getNumber(kernel, NVVM::NVVMDialect::getMinctasmAttrName());
  std::optional<int64_t> threads = getThreads(kernel);
  if (!blocks || !threads || *threads <= 0)
    return std::nullopt;
  return getMaxRegisters(*threads, *blocks);
}

void kvcache::allowOneBlock(gpu::GPUFuncOp kernel) {
  StringRef name = NVVM::NVVMDialect::getMinctasmAttrName();
  if (!kernel.isKernel() || !kernel.getKnownBlockSize() ||
      kernel->hasAttr(name) ||
      kernel->hasAttr(NVVM::NVVMDialect::getMaxnregAttrName()))
    return;
  kernel->setAttr(name, Builder(kernel).getI32IntegerAttr(1));
}
