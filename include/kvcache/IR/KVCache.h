//===- KVCache.h - The kvcache dialect and all its ops ----------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHE_H
#define KVCACHE_IR_KVCACHE_H

#include "kvcache/IR/AccessOps.h"
#include "kvcache/IR/AttentionOps.h"
#include "kvcache/IR/CheckOps.h"
#include "kvcache/IR/CopyOps.h"
#include "kvcache/IR/FragmentOps.h"
#include "kvcache/IR/FragmentProductOps.h"
#include "kvcache/IR/FragmentRowOps.h"
#include "kvcache/IR/FragmentTileOps.h"
#include "kvcache/IR/MatrixOps.h"
#include "kvcache/IR/PageTableOps.h"
#include "kvcache/IR/PartOps.h"
#include "kvcache/IR/PipeOps.h"
#include "kvcache/IR/QuantizationOps.h"
#include "kvcache/IR/QueryOps.h"
#include "kvcache/IR/ScalesOps.h"
#include "kvcache/IR/SelectionOps.h"
#include "kvcache/IR/SplitOps.h"
#include "kvcache/IR/TMAOps.h"
#include "kvcache/IR/TensorMapOps.h"
#include "kvcache/IR/TensorMemoryOps.h"
#include "kvcache/IR/TileOps.h"
#include "kvcache/IR/ViewOps.h"
#include "kvcache/IR/WholeCacheOps.h"

#endif // KVCACHE_IR_KVCACHE_H
