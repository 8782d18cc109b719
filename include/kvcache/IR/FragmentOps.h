//===- FragmentOps.h - Matrices in registers --------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTOPS_H
#define KVCACHE_IR_FRAGMENTOPS_H

#include "kvcache/IR/FragmentLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#define GET_OP_CLASSES
#include "kvcache/IR/FragmentOps.h.inc"

#endif // KVCACHE_IR_FRAGMENTOPS_H
