//===- CheckOps.td - Run-time checks -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_CHECKOPS_TD
#define KVCACHE_IR_CHECKOPS_TD

include "kvcache/IR/KVCacheOpBase.td"

// The op declares no memory effects, so that passes assume all of them and move
// nothing across a check.
def KVCache_CheckOp : KVCache_Op<"check"> {
  let summary = "Fails with a message unless a value is below a bound";
  let description = [{
    Compares value and bound as unsigned integers, so that a negative value
    fails as well. The message has the source location of the op, the value and
    the bound. On the CPU, the caller gets the message as an error. On a GPU,
    the kernel prints it and traps. `kvcache-bounds-checks` inserts this op.

    Example:

    ```mlir
    func.func @check(%page: index, %pages: index) {
      kvcache.check %page below %pages, "page id"
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Index, "the value">:$value,
    Arg<Index, "the exclusive upper bound">:$bound,
    StrAttr:$what
  );
  let assemblyFormat = "$value `below` $bound `,` $what attr-dict";
  let hasCanonicalizeMethod = 1;
}

#endif // KVCACHE_IR_CHECKOPS_TD
