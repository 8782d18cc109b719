//===- PartOps.h - The tensors of a cache -----------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_PARTOPS_H
#define KVCACHE_IR_PARTOPS_H

#include "kvcache/IR/KVCacheDialect.h"

#define GET_OP_CLASSES
#include "kvcache/IR/PartOps.h.inc"

#endif // KVCACHE_IR_PARTOPS_H
