//===- SelectionOps.h - Selection of tokens ---------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_SELECTIONOPS_H
#define KVCACHE_IR_SELECTIONOPS_H

#include "kvcache/IR/KVCacheDialect.h"

#include "mlir/Interfaces/DestinationStyleOpInterface.h"

#define GET_OP_CLASSES
#include "kvcache/IR/SelectionOps.h.inc"

#endif // KVCACHE_IR_SELECTIONOPS_H
