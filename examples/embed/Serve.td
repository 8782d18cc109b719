// The dialect of a serving engine, with an op that reads a paged cache.

#ifndef SERVE_TD
#define SERVE_TD

include "kvcache/IR/KVCacheTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Pass/PassBase.td"

def Serve_Dialect : Dialect {
  let name = "serve";
  let cppNamespace = "::serve";
}

def Serve_CopyKeysOp : Op<Serve_Dialect, "copy_keys"> {
  let summary = "copy the keys of a layer out of the pages";
  let description = [{
    `out[b, t, h, d]` becomes key `d` of head `h` of token `t` of sequence `b`.

    ```mlir
    serve.copy_keys %collection[%layer] to %out
        : !collection, memref<?x?x8x128xbf16>
    ```
  }];
  let arguments = (ins
    KVCache_PagedCollectionType:$collection,
    Index:$layer,
    Arg<MemRefRankOf<[AnyFloat], [4]>, "", [MemWrite]>:$out
  );
  let assemblyFormat = [{
    $collection `[` $layer `]` `to` $out attr-dict
    `:` qualified(type($collection)) `,` type($out)
  }];
  let hasVerifier = 1;
}

def LowerServe : Pass<"lower-serve"> {
  let summary = "rewrite the serve dialect into the kvcache dialect";
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::kvcache::KVCacheDialect",
    "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect",
    "mlir::vector::VectorDialect"
  ];
}

#endif // SERVE_TD
