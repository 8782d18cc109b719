//===- TypeConstraints.td - Types of operands and results -*- tablegen -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_IR_TYPECONSTRAINTS_TD
#define KVCACHE_IR_TYPECONSTRAINTS_TD

include "kvcache/IR/KVCacheTypes.td"

/// Whether a view or collection has elements or scales.
defvar KVCache_HasMemory =
    CPred<"::llvm::cast<::mlir::kvcache::CacheTypeInterface>($_self)"
          ".hasMemory()">;

def KVCache_AnyQuantized : Type<
    CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType>($_self) && "
          "::llvm::cast<::mlir::kvcache::PagedCacheType>($_self).isQuantized()">,
    "view of a quantized cache", "::mlir::kvcache::PagedCacheType">;

def KVCache_AnyQuantizedWithRows : Type<
    And<[KVCache_AnyQuantized.predicate,
         CPred<"::llvm::cast<::mlir::kvcache::PagedCacheType>($_self)"
               ".hasScaleRowsOfTokens()">]>,
    "view of a quantized cache whose scales are neither interleaved nor "
    "shared by tokens",
    "::mlir::kvcache::PagedCacheType">;

/// The operand of ops on scales: the cache, or a view of its scales.
def KVCache_AnyWithScales : Type<
    Or<[KVCache_AnyQuantized.predicate,
        And<[CPred<"::llvm::isa<::mlir::kvcache::ScalesType>($_self)">,
             KVCache_HasMemory]>]>,
    "view of a quantized cache or of its scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyWithScaleRows : Type<
    And<[KVCache_AnyWithScales.predicate,
         CPred<"::llvm::cast<::mlir::kvcache::CacheTypeInterface>($_self)"
               ".hasScaleRowsOfTokens()">,
         CPred<"::llvm::cast<::mlir::kvcache::CacheTypeInterface>($_self)"
               ".hasRowsOfTokens()">]>,
    "view of a quantized cache or of its scales, which are neither interleaved "
    "nor shared by tokens",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyPagedView : Type<
    And<[CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType, "
               "::mlir::kvcache::ScalesType>($_self)">,
         KVCache_HasMemory]>,
    "view of a paged cache or of its existing scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyCache : Type<
    CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType, "
          "::mlir::kvcache::ContinuousCacheType>($_self)">,
    "view of a paged or continuous cache, not of scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyPagedViewWithRows : Type<
    And<[KVCache_AnyPagedView.predicate,
         CPred<"::llvm::cast<::mlir::kvcache::CacheTypeInterface>($_self)"
               ".hasRowsOfTokens()">]>,
    "view of a paged cache or of its existing scales, which are neither "
    "interleaved nor shared by tokens",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyConvertingCache : Type<
    And<[KVCache_AnyCache.predicate,
         CPred<"::llvm::cast<::mlir::kvcache::CacheTypeInterface>($_self)"
               ".convertsElements()">]>,
    "view of a paged or continuous cache of floats of at most 32 bits, of "
    "i8 or with scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyView : Type<
    And<[CPred<"::llvm::isa<::mlir::kvcache::PagedCacheType, "
               "::mlir::kvcache::ContinuousCacheType, "
               "::mlir::kvcache::ScalesType>($_self)">,
         KVCache_HasMemory]>,
    "view of a paged or continuous cache or of existing scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyViewWithRows : Type<
    And<[KVCache_AnyView.predicate,
         CPred<"::llvm::cast<::mlir::kvcache::CacheTypeInterface>($_self)"
               ".hasRowsOfTokens()">]>,
    "view of a paged or continuous cache or of existing scales, which are "
    "neither interleaved nor shared by tokens",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_Barriers : Type<
    CPred<"::llvm::isa<::mlir::nvgpu::MBarrierGroupType>($_self)">,
    "mbarriers in shared memory", "::mlir::nvgpu::MBarrierGroupType">;

def KVCache_AnyCacheOrCollection : Type<
    CPred<"::llvm::isa<::mlir::kvcache::CacheTypeInterface>($_self) && "
          "!::llvm::isa<::mlir::kvcache::ScalesType>($_self)">,
    "cache view or collection, not a view of scales",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyViewOrCollection : Type<
    CPred<"::llvm::isa<::mlir::kvcache::CacheTypeInterface>($_self)">,
    "view or collection", "::mlir::kvcache::CacheTypeInterface">;

def KVCache_AnyMemory : Type<
    And<[KVCache_AnyViewOrCollection.predicate, KVCache_HasMemory]>,
    "view or collection that has memory",
    "::mlir::kvcache::CacheTypeInterface">;

def KVCache_FixedVector1D : Type<
    CPred<"::llvm::isa<::mlir::VectorType>($_self) && "
          "::llvm::cast<::mlir::VectorType>($_self).getRank() == 1 && "
          "!::llvm::cast<::mlir::VectorType>($_self).isScalable() && "
          "::llvm::isa<::mlir::FloatType, ::mlir::IntegerType>("
          "::llvm::cast<::mlir::VectorType>($_self).getElementType())">,
    "1-D vector of fixed length">;

/// A float or an integer, or a vector of them: the elements of an access.
def KVCache_Elements : AnyTypeOf<[AnyFloat, AnySignlessInteger,
                                  KVCache_FixedVector1D]>;

#endif // KVCACHE_IR_TYPECONSTRAINTS_TD
