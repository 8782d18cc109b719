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

/// The optional page operands of an access. A page of the scales is one of
/// their own lookup table.
defvar KVCache_PageArgument = (ins
  Arg<Optional<Index>, "the token's page, if looked up already">:$page
);
defvar KVCache_ScalePageArgument = (ins
  Arg<Optional<Index>, "the page of the token's scales, if looked up already">
      :$scale_page
);

/// The indices (b, h, t, d) that accesses share.
defvar KVCache_IndexArguments = (ins
  Arg<Index, "the sequence in the batch">:$batch,
  Arg<Index, "the head">:$head,
  Arg<Index, "the token in the sequence">:$token,
  Arg<Index, "the element of the head">:$element
);

/// The scale of the whole tensor that NVFP4 has above those of the groups.
defvar KVCache_TensorScaleArgument = (ins
  Arg<Optional<F32>, "what all scales are multiplied by">:$tensor_scale
);

/// A hint of the accesses to elements, as upstream's loads and stores have it.
defvar KVCache_NontemporalArgument = (ins
  DefaultValuedOptionalAttr<BoolAttr, "false">:$nontemporal
);

/// An access by sequence, head, token and element, through an optional page.
class KVCache_IndexedAccess<list<string> methods = []>
    : KVCache_Access<!listconcat(
        ["getAccessedBatch", "getAccessedHead", "getAccessedToken",
         "getAccessedElement", "getAccessedWidth", "getPageOperand"],
        methods)>;

/// An indexed access to nothing but the scales.
class KVCache_ScalesAccess<list<string> methods = []>
    : KVCache_Access<!listconcat(
        ["getAccessedBatch", "getAccessedHead", "getAccessedToken",
         "getAccessedElement", "getAccessedWidth", "accessesScales",
         "accessesElements", "getScalePageOperand"],
        methods)>;

/// Reads the lookup table or the lengths: no memory effects, because they are
/// immutable while in use, and speculatable where the entry provably exists.
defvar KVCache_TableRead = [
  NoMemoryEffect, DeclareOpInterfaceMethods<ConditionallySpeculatable>];

/// Gives the range of its integer results.
defvar KVCache_Ranged =
  DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>;

#endif // KVCACHE_IR_KVCACHEOPBASE_TD
