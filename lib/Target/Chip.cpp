//===- Chip.cpp - Features of NVIDIA chips --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The source is the PTX ISA 9.0, parts "Target ISA Notes" and "PTX ISA Notes"
// of the named sections. Each feature was compiled for each chip with LLVM 22.1
// and ptxas 13.0. Comments name sections by their instruction, because section
// numbers change between releases.
//
//===----------------------------------------------------------------------===//

#include "kvcache/Target/Chip.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace mlir::kvcache;

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

/// "cp.async" and "mbarrier.test_wait": sm_80, PTX 7.0. The wait with explicit
/// state that LLVM generates needs PTX 8.0.
static constexpr Feature kAmpere = Feature::AsyncCopy;

/// "cvt", .e4m3x2 and .e5m2x2: sm_89, PTX 8.1; with LLVM's intrinsics PTX 8.3.
/// "mma", .e4m3 and .e5m2: sm_89, PTX 8.4; one QMMA in SASS.
static constexpr Feature kAdaFeatures =
    kAmpere | Feature::FP8Conversion | Feature::FP8MMA;

/// "cp.async.bulk", "cp.async.bulk.tensor" and "mbarrier.expect_tx": sm_90, PTX
/// 8.0; to .shared::cta PTX 8.6. "mma" with .e4m3 is F2FP and HMMA in SASS.
/// "mapa", "barrier.cluster" and .shared::cluster: sm_90, PTX 7.8.
static constexpr Feature kHopperFeatures =
    kAmpere | Feature::FP8Conversion | Feature::TMA | Feature::Clusters;

/// "cp.async.bulk.tensor", .tile::gather4 to .shared::cta: sm_100, PTX 8.6.
/// "ld" and "st", .v8.b32 and .v4.b64 in .global: sm_100, PTX 8.8.
static constexpr Feature kBlackwellFeatures =
    kHopperFeatures | Feature::Gather4 | Feature::Access256;

/// Features only of code for one architecture or family, from PTX 8.6 or 8.8
/// on: "ldmatrix", .m16n16 and .b8: sm_100a, sm_110a, sm_120a. "cvt", .e2m1x2,
/// .e2m3x2, .e3m2x2 and .ue8m0x2: sm_100a, sm_110a, sm_120a.
static constexpr Feature kSpecific =
    Feature::LdMatrixB8 | Feature::NarrowConversion;

/// Not all chips with tensor memory have all of tcgen05: "tcgen05.mma",
/// .kind::i8 and scale-input-d; "tcgen05.shift".
static constexpr Feature kTensorShift = Feature::TensorShift;
static constexpr Feature kTensorScale = Feature::TensorScale;
static constexpr Feature kTensorIntegers = Feature::TensorIntegers;

/// "add", "mul" and "fma", .f32x2: sm_100, PTX 8.6; FADD2 and FFMA2 in SASS.
static constexpr Feature kPairedF32 = Feature::PairedF32;

/// Features of chips with tensor memory, in code for one architecture or
/// family: "cp.async.bulk.tensor", .tile::gather4 to .shared::cluster and
/// .tile::scatter4, and "cp.async.bulk.prefetch.tensor", .tile::gather4.
static constexpr Feature kSpecificDatacenter =
    kSpecific | Feature::Gather4Cluster | Feature::Scatter4 |
    Feature::TensorMemory;

//===----------------------------------------------------------------------===//
// Chips
//===----------------------------------------------------------------------===//

/// The PTX version of a chip is the maximum of those of its features, and of
/// the first version that supports the chip ("Release Notes", "Directives:
/// .target"): sm_100 8.6, sm_120 8.7, sm_103 and sm_121 and all f-variants 8.8,
/// sm_88 and sm_110 9.0.
///
/// The kilobytes of shared memory are the "Maximum amount of shared memory per
/// thread block" of the CUDA C++ Programming Guide, "Technical Specifications
/// per Compute Capability"; for sm_88, of `arch_traits` in libcu++.
static constexpr Chip kChips[] = {
    // clang-format off
    // name       cc   variant                ptx  shared  features
    {"sm_80",     80,  Variant::Base,         80,  163,    kAmpere},
    {"sm_86",     86,  Variant::Base,         80,  99,     kAmpere},
    {"sm_87",     87,  Variant::Base,         80,  163,    kAmpere},
    {"sm_88",     88,  Variant::Base,         90,  99,     kAmpere},
    {"sm_89",     89,  Variant::Base,         84,  99,     kAdaFeatures},
    {"sm_90",     90,  Variant::Base,         86,  227,    kHopperFeatures},
    {"sm_90a",    90,  Variant::Architecture, 86,  227,    kHopperFeatures | Feature::WGMMA},
    {"sm_100",    100, Variant::Base,         88,  227,    kBlackwellFeatures | kPairedF32},
    {"sm_100a",   100, Variant::Architecture, 88,  227,    kBlackwellFeatures | kPairedF32 | kSpecificDatacenter | Feature::ReduxF32 | Feature::StochasticRounding | kTensorShift | kTensorScale | kTensorIntegers},
    {"sm_100f",   100, Variant::Family,       88,  227,    kBlackwellFeatures | kPairedF32 | kSpecificDatacenter | Feature::ReduxF32 | kTensorScale},
    {"sm_103",    103, Variant::Base,         88,  227,    kBlackwellFeatures | kPairedF32},
    {"sm_103a",   103, Variant::Architecture, 88,  227,    kBlackwellFeatures | kPairedF32 | kSpecificDatacenter | Feature::ReduxF32 | Feature::StochasticRounding | kTensorShift | kTensorScale},
    {"sm_103f",   103, Variant::Family,       88,  227,    kBlackwellFeatures | kPairedF32 | kSpecificDatacenter | Feature::ReduxF32 | kTensorScale},
    {"sm_110",    110, Variant::Base,         90,  227,    kBlackwellFeatures},
    {"sm_110a",   110, Variant::Architecture, 90,  227,    kBlackwellFeatures | kSpecificDatacenter | kTensorShift | kTensorIntegers},
    {"sm_110f",   110, Variant::Family,       90,  227,    kBlackwellFeatures | kSpecificDatacenter},
    {"sm_120",    120, Variant::Base,         88,  99,     kBlackwellFeatures | Feature::FP8MMA},
    {"sm_120a",   120, Variant::Architecture, 88,  99,     kBlackwellFeatures | Feature::FP8MMA | kSpecific | Feature::BlockScaleMMA},
    {"sm_120f",   120, Variant::Family,       88,  99,     kBlackwellFeatures | Feature::FP8MMA | kSpecific | Feature::BlockScaleMMA},
    {"sm_121",    121, Variant::Base,         88,  99,     kBlackwellFeatures | Feature::FP8MMA},
    {"sm_121a",   121, Variant::Architecture, 88,  99,     kBlackwellFeatures | Feature::FP8MMA | kSpecific | Feature::BlockScaleMMA},
    {"sm_121f",   121, Variant::Family,       88,  99,     kBlackwellFeatures | Feature::FP8MMA | kSpecific | Feature::BlockScaleMMA},
    // clang-format on
};

ArrayRef<Chip> kvcache::getChips() { return kChips; }

const Chip *kvcache::lookupChip(StringRef name) {
  const Chip *chip =
      llvm::find_if(kChips, [&](const Chip &c) { return c.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

FailureOr<SmallVector<const Chip *>>
kvcache::lookupChips(Operation *op, ArrayRef<std::string> names) {
  SmallVector<const Chip *> chips;
  for (const std::string &name : names) {
    chips.push_back(lookupChip(name));
    if (!chips.back())
      return op->emitError(getUnknownChipMessage(name));
  }
  return chips;
}

std::string Chip::getFeatures() const {
  return ("+ptx" + Twine(ptxVersion)).str();
}

const Chip *kvcache::getTargetChip(Operation *op) {
  auto module = dyn_cast<gpu::GPUModuleOp>(op);
  if (!module)
    module = op->getParentOfType<gpu::GPUModuleOp>();
  if (!module || !module.getTargetsAttr())
    return nullptr;
  const Chip *chip = nullptr;
  for (Attribute attribute : module.getTargetsAttr()) {
    auto target = dyn_cast<NVVM::NVVMTargetAttr>(attribute);
    const Chip *targetChip = target ? lookupChip(target.getChip()) : nullptr;
    if (!targetChip || (chip && chip != targetChip))
      return nullptr;
    chip = targetChip;
  }
  return chip;
}

bool kvcache::isPTXIdentifier(StringRef name) {
  auto isLetter = [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$';
  };
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name, isLetter);
}

StringRef kvcache::getIdentifierRule() {
  return "expects a name of letters, digits, '_' and '$', not starting with a "
         "digit";
}

bool kvcache::isInGPUCode(Operation *op) {
  return op->getParentOfType<gpu::GPUModuleOp>() ||
         op->getParentOfType<gpu::LaunchOp>();
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

StringRef kvcache::getFeatureName(Feature feature) {
  switch (feature) {
  case Feature::None:
    return "no feature";
  case Feature::AsyncCopy:
    return "cp.async";
  case Feature::TMA:
    return "TMA";
  case Feature::Gather4:
    return "gather4";
  case Feature::Gather4Cluster:
    return "gather4 to shared::cluster";
  case Feature::Scatter4:
    return "scatter4";
  case Feature::FP8MMA:
    return "fp8 mma";
  case Feature::LdMatrixB8:
    return "ldmatrix of 8-bit elements";
  case Feature::FP8Conversion:
    return "fp8 conversions";
  case Feature::NarrowConversion:
    return "fp4, fp6 and e8m0 conversions";
  case Feature::Access256:
    return "256-bit global accesses";
  case Feature::ReduxF32:
    return "redux of f32";
  case Feature::TensorMemory:
    return "tensor memory";
  case Feature::WGMMA:
    return "wgmma";
  case Feature::BlockScaleMMA:
    return "mma with block scales";
  case Feature::StochasticRounding:
    return "stochastic rounding";
  case Feature::TensorIntegers:
    return "tcgen05.mma of 8-bit integers";
  case Feature::TensorScale:
    return "tcgen05.mma with a scale";
  case Feature::TensorShift:
    return "tcgen05.shift";
  case Feature::PairedF32:
    return "arithmetic on pairs of f32";
  case Feature::Clusters:
    return "clusters";
  }
  return "several features";
}

/// Joins alternatives: `a`, `a or b`, `a, b or c`.
static std::string joinAlternatives(ArrayRef<std::string> names) {
  if (names.size() < 2)
    return llvm::join(names, "");
  return llvm::join(names.drop_back(), ", ") + " or " + names.back();
}

std::string kvcache::getChipsWith(Feature feature) {
  // The oldest base chip such that it and all newer chips have the feature.
  ArrayRef<Chip> chips = getChips(), newest;
  while (!chips.empty() && chips.back().has(feature)) {
    if (chips.back().variant == Variant::Base)
      newest = getChips().drop_front(chips.size() - 1);
    chips = chips.drop_back();
  }
  chips = getChips().drop_back(newest.size());

  SmallVector<std::string> names;
  for (const Chip &chip : chips) {
    if (!chip.has(feature))
      continue;
    // Combine the a- and f-variants of a chip: sm_100a/f.
    if (chip.variant == Variant::Family && !names.empty() &&
        names.back() == (chip.name.drop_back() + "a").str())
      names.back() += "/f";
    else
      names.push_back(chip.name.str());
  }
  if (!newest.empty())
    names.push_back((newest.front().name + " or newer").str());
  return joinAlternatives(names);
}

std::string kvcache::getUnknownChipMessage(StringRef name) {
  std::string known = llvm::join(
      llvm::map_range(getChips(), [](const Chip &c) { return c.name.str(); }),
      ", ");
  return ("unknown chip '" + name + "'; known are " + known).str();
}

std::string kvcache::getMissingFeatureMessage(const Chip &chip,
                                              Feature feature) {
  return ("requires " + Twine(getChipsWith(feature)) + " for " +
          getFeatureName(feature) + ", but the target is " + chip.name)
      .str();
}
