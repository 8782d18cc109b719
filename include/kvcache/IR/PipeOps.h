//===- PipeOps.h - Pipes of tiles -------------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_PIPEOPS_H
#define KVCACHE_IR_PIPEOPS_H

#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/FragmentRowOps.h"
#include "kvcache/IR/SplitOps.h"

#define GET_OP_CLASSES
#include "kvcache/IR/PipeOps.h.inc"

#endif // KVCACHE_IR_PIPEOPS_H
