//===- operations.c - Operations with named operands in C -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// RUN: %capi_tests/kvcache-capi-operations | FileCheck %s

#include "common.h"

#include "kvcache-c/Dialect.h"
#include "kvcache-c/Operations.h"

#include "mlir-c/BuiltinAttributes.h"

#define PARAMS "#kvcache.params<num_heads = 8, head_size = 128>"
#define CACHE "!kvcache.paged<bf16, " PARAMS ", page_size = 64>"
#define INDEX_CACHE                                                            \
  "!kvcache.paged<bf16, #kvcache.params<num_heads = 1, head_size = 128>, "     \
  "page_size = 64>"
#define COLLECTION "!kvcache.paged_collection<bf16, " PARAMS ", page_size = 64>"
#define ROWS "memref<?x8x128xbf16>"
#define QUERIES "memref<?x32x128xbf16>"
#define NUMBERS "memref<?xi32>"

#define MOST 12

/// An operand by name, with the text of its type; none if that is null.
typedef struct Operand {
  const char *name, *type;
} Operand;

/// An op with a block, whose arguments are the operands that a test needs.
static MlirOperation createParent(MlirLocation loc, MlirBlock block) {
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  MlirOperationState state = mlirOperationStateGet(str("test.parent"), loc);
  mlirOperationStateAddOwnedRegions(&state, 1, &region);
  return mlirOperationCreate(&state);
}

static void addAttributes(MlirOperationState *state, const char *text) {
  MlirContext context = mlirLocationGetContext(state->location);
  MlirAttribute all = mlirAttributeParseGet(context, str(text));
  for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(all); ++i) {
    MlirNamedAttribute attribute = mlirDictionaryAttrGetElement(all, i);
    mlirOperationStateAddAttributes(state, 1, &attribute);
  }
}

/// Creates an operation of these operands, up to one without a name, prints it
/// in its parent, and says whether it is valid.
static void create(MlirLocation loc, const char *name, const Operand *given,
                   const char *attributes, const char *result) {
  MlirContext context = mlirLocationGetContext(loc);
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);
  MlirOperation parent = createParent(loc, block);
  MlirStringRef names[MOST];
  MlirValue operands[MOST];
  intptr_t count = 0;
  for (; given[count].name; ++count) {
    const char *type = given[count].type;
    names[count] = str(given[count].name);
    operands[count].ptr = NULL;
    if (type)
      operands[count] = mlirBlockAddArgument(
          block, mlirTypeParseGet(context, str(type)), loc);
  }
  MlirOperationState state = mlirOperationStateGet(str(name), loc);
  if (mlirLogicalResultIsFailure(mlirKVCacheOperationStateAddNamedOperands(
          &state, count, names, operands))) {
    printf("none, %d operands\n", (int)state.nOperands);
  } else {
    addAttributes(&state, attributes);
    if (result) {
      MlirType type = mlirTypeParseGet(context, str(result));
      mlirOperationStateAddResults(&state, 1, &type);
    }
    MlirOperation op = mlirOperationCreate(&state);
    mlirBlockAppendOwnedOperation(block, op);
    bool isValid = mlirOperationVerify(op);
    mlirOperationPrint(parent, print, NULL);
    printf("\nvalid %d\n", isValid);
  }
  mlirOperationDestroy(parent);
}

#define CREATE(NAME, ATTRIBUTES, RESULT, ...)                                  \
  do {                                                                         \
    const Operand operands[] = {__VA_ARGS__, {NULL, NULL}};                    \
    create(loc, "kvcache." NAME, operands, ATTRIBUTES, RESULT);                \
  } while (0)

/// Arguments have the numbers that their names have here.
static void testWholeCacheOps(MlirLocation loc) {
  // clang-format off
  // CHECK: kvcache.append %arg6, %arg4 to %arg0, %arg1 rows %arg5 slots %arg2 queries %arg3 {epsilon = {{.*}}} :
  // CHECK: valid 1
  // clang-format on
  CREATE("append", "{epsilon = 1.0e-5 : f32}", NULL, {"key_cache", CACHE},
         {"value_cache", CACHE}, {"slots", "memref<?xi64>"},
         {"queries", QUERIES}, {"values", ROWS}, {"positions", NULL},
         {"row_offsets", NUMBERS}, {"keys", ROWS});
  // clang-format off
  // CHECK: kvcache.gather %arg2 outs(%arg1) output_offsets %arg0 {block_threads = 512 : i64, heads_per_thread = 8 : i64} :
  // clang-format on
  // CHECK: valid 1
  CREATE("gather", "{block_threads = 512 : i64, heads_per_thread = 8 : i64}",
         NULL, {"output_offsets", NUMBERS}, {"keys", ROWS},
         {"key_cache", CACHE});
  // CHECK: kvcache.copy %arg0 to %arg1 end %arg2 {heads = 4 : i64} :
  // CHECK: valid 1
  CREATE("copy", "{heads = 4 : i64}", NULL, {"source", CACHE},
         {"target", CACHE}, {"end", NUMBERS});
  // CHECK: kvcache.copy_pages %arg1 pairs %arg0 :
  // CHECK: valid 1
  CREATE("copy_pages", "{}", NULL, {"pairs", "memref<?x2xi32>"},
         {"collection", COLLECTION});
  // clang-format off
  // CHECK: %[[OUT:.*]] = kvcache.attention %arg1, %arg2, %arg3, %arg4, %arg5 outs(%arg0) workspace %arg6 {causal, window = 4096 : i64} sinks %arg7 :
  // CHECK: valid 1
  // clang-format on
  CREATE("attention", "{causal, window = 4096 : i64}", "tensor<?x32x128xbf16>",
         {"out", "tensor<?x32x128xbf16>"}, {"q", QUERIES}, {"key_cache", CACHE},
         {"value_cache", CACHE}, {"row_offsets", NUMBERS}, {"scale", "f32"},
         {"workspace", "memref<?xi8>"}, {"sinks", "memref<32xf32>"});
  // clang-format off
  // CHECK: kvcache.workspace_size %arg0 {query_heads = 32 : i64, value_size = 128 : i64}
  // CHECK: valid 1
  // clang-format on
  CREATE("workspace_size", "{query_heads = 32 : i64, value_size = 128 : i64}",
         "index", {"batch", "index"});
  // CHECK: kvcache.merge_states %arg3, %arg2 outs(%arg1, %arg0) :
  // CHECK: valid 1
  CREATE("merge_states", "{}", NULL, {"lse", "memref<?x8xf32>"}, {"out", ROWS},
         {"lses", "memref<?x?x8xf32>"}, {"splits", "memref<?x?x8x128xbf16>"});
  // CHECK: kvcache.remap_rows %arg3, %arg2 rows %arg1 outs(%arg0) :
  // CHECK: valid 1
  CREATE("remap_rows", "{}", NULL, {"ids", "memref<?x64xi32>"},
         {"row_offsets", NUMBERS}, {"cache", CACHE},
         {"tokens", "memref<?x64xi32>"});
  // CHECK: kvcache.pool %arg2 rows %arg1 outs(%arg0) {width = 4 : i64} :
  // CHECK: valid 1
  CREATE("pool", "{width = 4 : i64}", NULL, {"pooled", ROWS},
         {"row_offsets", NUMBERS}, {"cache", CACHE});
  // CHECK: kvcache.index_scores %arg3, %arg2 rows %arg1 outs(%arg0) {relu} :
  // CHECK: valid 1
  CREATE("index_scores", "{relu}", NULL, {"scores", "memref<?x4x?xf32>"},
         {"row_offsets", NUMBERS}, {"cache", INDEX_CACHE},
         {"q", "memref<?x4x128xbf16>"});
  // clang-format off
  // CHECK: kvcache.top_rows %arg3, %arg2 rows %arg1 outs(%arg0) {first = 1 : i64} :
  // CHECK: valid 1
  // clang-format on
  CREATE("top_rows", "{first = 1 : i64}", NULL, {"ids", "memref<?x64xi32>"},
         {"row_offsets", NUMBERS}, {"cache", CACHE},
         {"scores", "memref<?x?xf32>"});
}

/// Ops of kernels have names too, and operands of which there are several.
static void testOtherOps(MlirLocation loc) {
  // CHECK: kvcache.paged_view value %arg1[%arg0] :
  // CHECK: valid 1
  CREATE("paged_view", "{role = 1 : i32}", CACHE, {"layer", "index"},
         {"collection", COLLECTION});
  // CHECK: 'kvcache.yield' op expects parent op to be one of
  // CHECK: "kvcache.yield"(%arg0, %arg1) : (i32, f32) -> ()
  // CHECK: valid 0
  CREATE("yield", "{}", NULL, {"results", "i32"}, {"results", "f32"});
}

static void testErrors(MlirLocation loc) {
  // CHECK-NEXT: model.c:7:3: expects an operand 'pairs' of 'kvcache.copy_pages'
  // CHECK-NEXT: none, 0 operands
  CREATE("copy_pages", "{}", NULL, {"collection", COLLECTION}, {"pairs", NULL});
  // clang-format off
  // CHECK-NEXT: model.c:7:3: expects one operand 'pairs' of 'kvcache.copy_pages', got 2
  // CHECK-NEXT: none, 0 operands
  // clang-format on
  CREATE("copy_pages", "{}", NULL, {"collection", COLLECTION},
         {"pairs", "memref<?x2xi32>"}, {"pairs", "memref<?x2xi32>"});
  // CHECK-NEXT: model.c:7:3: expects no operand 'keys?' of 'kvcache.append'
  // CHECK-NEXT: none, 0 operands
  CREATE("append", "{}", NULL, {"keys?", ROWS});
  // clang-format off
  // CHECK-NEXT: model.c:7:3: expects an op of the dialect, got 'kvcache.absent'
  // CHECK-NEXT: none, 0 operands
  // clang-format on
  CREATE("absent", "{}", NULL, {"keys", ROWS});
}

int main(void) {
  MlirContext context = mlirContextCreate();
  mlirContextAttachDiagnosticHandler(context, report, NULL, NULL);
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__kvcache__(), context);
  MlirLocation loc = mlirLocationFileLineColGet(context, str("model.c"),
                                                /*line=*/7, /*col=*/3);
  mlirContextSetAllowUnregisteredDialects(context, true);
  testWholeCacheOps(loc);
  testOtherOps(loc);
  testErrors(loc);
  mlirContextDestroy(context);
  return 0;
}
