//===- TensorMemoryOps.h - Products in tensor memory ------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_TENSORMEMORYOPS_H
#define KVCACHE_IR_TENSORMEMORYOPS_H

#include "kvcache/IR/MatrixPart.h"

#define GET_OP_CLASSES
#include "kvcache/IR/TensorMemoryOps.h.inc"

#endif // KVCACHE_IR_TENSORMEMORYOPS_H
