//===- FragmentRowOps.h - Rows of fragments in memory ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTROWOPS_H
#define KVCACHE_IR_FRAGMENTROWOPS_H

#include "kvcache/IR/FragmentLayout.h"

#define GET_OP_CLASSES
#include "kvcache/IR/FragmentRowOps.h.inc"

#endif // KVCACHE_IR_FRAGMENTROWOPS_H
