//===- KVCacheOps.td - All ops of the kvcache dialect -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEOPS_TD
#define KVCACHE_IR_KVCACHEOPS_TD

include "kvcache/IR/ViewOps.td"
include "kvcache/IR/QueryOps.td"
include "kvcache/IR/AccessOps.td"
include "kvcache/IR/QuantizationOps.td"
include "kvcache/IR/ScalesOps.td"
include "kvcache/IR/PartOps.td"
include "kvcache/IR/PageTableOps.td"
include "kvcache/IR/TileOps.td"
include "kvcache/IR/CopyOps.td"
include "kvcache/IR/PipeOps.td"
include "kvcache/IR/MatrixOps.td"
include "kvcache/IR/FragmentOps.td"
include "kvcache/IR/FragmentTileOps.td"
include "kvcache/IR/FragmentRowOps.td"
include "kvcache/IR/FragmentProductOps.td"
include "kvcache/IR/TensorMemoryOps.td"
include "kvcache/IR/TensorMapOps.td"
include "kvcache/IR/TMAOps.td"
include "kvcache/IR/CheckOps.td"
include "kvcache/IR/WholeCacheOps.td"
include "kvcache/IR/AttentionOps.td"
include "kvcache/IR/SplitOps.td"
include "kvcache/IR/SelectionOps.td"

#endif // KVCACHE_IR_KVCACHEOPS_TD
