//===- FragmentProductOps.h - Products of fragments and tiles --*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_FRAGMENTPRODUCTOPS_H
#define KVCACHE_IR_FRAGMENTPRODUCTOPS_H

#include "kvcache/IR/FragmentLayout.h"
#include "kvcache/IR/MatrixPart.h"

#define GET_OP_CLASSES
#include "kvcache/IR/FragmentProductOps.h.inc"

#endif // KVCACHE_IR_FRAGMENTPRODUCTOPS_H
