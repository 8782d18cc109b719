// The dialect of a serving engine, with ops that read and write a paged cache.

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

def Serve_DecodeOp : Op<Serve_Dialect, "decode"> {
  let summary = "append the keys and values of new tokens, and attend to all";
  let description = [{
    Rotates keys and queries by `rope`, a table of cosines and sines, writes the
    keys and values of a layer, and puts the attention of the queries in `out`.

    ```mlir
    serve.decode %q, %k, %v, %offsets, %rope, %scale on %cache[%layer] to %out
        : !queries, !rows, !rows, memref<?xi32>, memref<?x128xf32>, !collection,
          !queries
    ```
  }];
  let arguments = (ins
    AnyMemRef:$q, AnyMemRef:$keys, AnyMemRef:$values,
    MemRefRankOf<[I32], [1]>:$row_offsets,
    MemRefRankOf<[F32], [2]>:$rope,
    F32:$scale,
    KVCache_PagedCollectionType:$collection,
    Index:$layer,
    AnyMemRef:$out
  );
  let assemblyFormat = [{
    $q `,` $keys `,` $values `,` $row_offsets `,` $rope `,` $scale `on`
    $collection `[` $layer `]` `to` $out attr-dict `:` type($q) `,` type($keys)
    `,` type($values) `,` type($row_offsets) `,` type($rope) `,`
    qualified(type($collection)) `,` type($out)
  }];
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
