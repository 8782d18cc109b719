//===- KVCacheOpBase.td - Base classes of kvcache ops -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEOPBASE_TD
#define KVCACHE_IR_KVCACHEOPBASE_TD

include "kvcache/IR/KVCacheTypes.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class KVCache_Op<string mnemonic, list<Trait> traits = []>
    : Op<KVCache_Dialect, mnemonic, traits>;

/// An op that addresses a cache; names the methods it overrides.
class KVCache_Access<list<string> methods>
    : DeclareOpInterfaceMethods<KVCache_AccessOpInterface,
        !listconcat(["getAccessedCache"], methods)>;

/// Reads the lookup table or the lengths: no memory effects, because they are
/// immutable while in use, and speculatable where the entry provably exists.
defvar KVCache_TableRead = [
  NoMemoryEffect, DeclareOpInterfaceMethods<ConditionallySpeculatable>];

/// Gives the range of its integer results.
defvar KVCache_Ranged =
  DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>;

#endif // KVCACHE_IR_KVCACHEOPBASE_TD
