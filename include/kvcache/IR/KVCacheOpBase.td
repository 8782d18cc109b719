//===- KVCacheOpBase.td - Base classes of kvcache ops -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_KVCACHEOPBASE_TD
#define KVCACHE_IR_KVCACHEOPBASE_TD

include "kvcache/IR/FragmentTypes.td"
include "kvcache/IR/TypeConstraints.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// What an argument of an op has to be, with or without a description.
class KVCache_ArgumentConstraint<dag arguments, int i> {
  defvar described = !getdagarg<OpVariable>(arguments, i);
  Constraint value = !if(!initialized(described), described.constraint,
                         !getdagarg<Constraint>(arguments, i));
}

/// The names of those arguments that are operands, as `getOperandNames` has them.
class KVCache_OperandNames<dag arguments> {
  list<string> value = !foldl([]<string>, !range(!size(arguments)), names, i,
    !listconcat(names, !cond(
      !isa<AttrConstraint>(KVCache_ArgumentConstraint<arguments, i>.value) :
        []<string>,
      !isa<Optional>(KVCache_ArgumentConstraint<arguments, i>.value) :
        [!getdagname(arguments, i) # "?"],
      !isa<Variadic>(KVCache_ArgumentConstraint<arguments, i>.value) :
        [!getdagname(arguments, i) # "*"],
      true : [!getdagname(arguments, i)])));
}

class KVCache_Op<string mnemonic, list<Trait> traits = []>
    : Op<KVCache_Dialect, mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<KVCache_NamedOperandsOpInterface>])> {
  let extraClassDefinition = [{
    ::llvm::ArrayRef<::llvm::StringLiteral> $cppClass::getOperandNames() {
      static constexpr ::llvm::StringLiteral names[] = {"}]
    # !interleave(KVCache_OperandNames<arguments>.value, "\", \"") # [{"};
      return ::llvm::ArrayRef(names).take_front(}]
    # !size(KVCache_OperandNames<arguments>.value) # [{);
    }
  }];
}

/// An op that addresses a cache, and the interface methods that it overrides.
class KVCache_Access<list<string> methods>
    : DeclareOpInterfaceMethods<KVCache_AccessOpInterface,
        !listconcat(["getAccessedCache"], methods)>;

/// The optional page operands of an access. Scales have their own lookup table,
/// hence their own page.
defvar KVCache_PageArgument = (ins
  Arg<Optional<Index>, "the page of the token, if already known">:$page
);
defvar KVCache_ScalePageArgument = (ins
  Arg<Optional<Index>, "the page of the token's scales, if already known">
      :$scale_page
);

/// The thread whose elements of a fragment an op places.
def KVCache_FragmentThread : Arg<Optional<Index>,
    "the number of the thread that executes the op, as `opaque_thread` "
    "returns it; by default computed from that of `gpu.thread_id`">;

/// The indices (b, h, t, d) of an access.
defvar KVCache_IndexArguments = (ins
  Arg<Index, "the sequence in the batch">:$batch,
  Arg<Index, "the head">:$head,
  Arg<Index, "the token in the sequence">:$token,
  Arg<Index, "the element of the head">:$element
);

/// A scale of the whole tensor, such as that of NVFP4, in addition to the scales
/// of quantization groups, if there are any.
defvar KVCache_TensorScaleArgument = (ins
  Arg<Optional<F32>, "a factor of all elements">:$tensor_scale
);

/// The nontemporal hint, as on the loads and stores of `memref` and `vector`.
defvar KVCache_NontemporalArgument = (ins
  DefaultValuedAttr<BoolAttr, "false">:$nontemporal
);

/// Which lines the L2 cache of a chip evicts first.
defvar KVCache_L2Hint = (ins OptionalAttr<KVCache_EvictionAttr>:$l2_hint);

/// An access by sequence, head, token and element, through an optional page.
class KVCache_IndexedAccess<list<string> methods = []>
    : KVCache_Access<!listconcat(
        ["getAccessedBatch", "getAccessedHead", "getAccessedToken",
         "getAccessedElement", "getAccessedWidth", "getPageOperand"],
        methods)>;

/// An indexed access to scales only.
class KVCache_ScalesAccess<list<string> methods = []>
    : KVCache_Access<!listconcat(
        ["getAccessedBatch", "getAccessedHead", "getAccessedToken",
         "getAccessedElement", "getAccessedWidth", "accessesScales",
         "accessesElements", "getScalePageOperand"],
        methods)>;

/// Reads the lookup table or the lengths. Has no memory effects, because these
/// are immutable while in use. Is speculatable if the entry provably exists.
defvar KVCache_TableRead = [
  NoMemoryEffect, DeclareOpInterfaceMethods<ConditionallySpeculatable>];

/// Infers the range of its integer results.
defvar KVCache_Ranged =
  DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>;

#endif // KVCACHE_IR_KVCACHEOPBASE_TD
