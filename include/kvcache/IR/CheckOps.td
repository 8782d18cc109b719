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

// No memory effects are declared, so that passes assume all of them: nothing
// moves across a check.
def KVCache_CheckOp : KVCache_Op<"check"> {
  let summary = "Stops with a message unless a value is below a bound";
  let description = [{
    Compares as unsigned, so that a negative value is out of range as well. The
    message carries the op's source location, the value and the bound. On the
    CPU it reaches the caller as an error; on a GPU it is printed and the kernel
    traps. `kvcache-bounds-checks` makes these.

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
    Arg<Index, "the first value that is too large">:$bound,
    StrAttr:$what
  );
  let assemblyFormat = "$value `below` $bound `,` $what attr-dict";
  let hasCanonicalizeMethod = 1;
}

#endif // KVCACHE_IR_CHECKOPS_TD
