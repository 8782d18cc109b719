//===- Chip.h - Features of NVIDIA chips ------------------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The NVPTX back end aborts the process on an instruction that the chip does
// not have, and the NVVM verifier checks only for sm_90. Lowerings therefore
// check this table first, and report a missing feature at the location of the
// op.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_TARGET_CHIP_H
#define KVCACHE_TARGET_CHIP_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/BitmaskEnum.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::kvcache {

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

/// A feature of a chip that lowerings depend on. Sets are bitwise ors.
enum class Feature : uint32_t {
  None = 0,
  /// cp.async from global to shared memory.
  AsyncCopy = 1 << 0,
  /// Tensor copies of tiles in both directions, bulk copies, and mbarriers that
  /// count bytes.
  TMA = 1 << 1,
  /// Tensor copies in mode tile::gather4 to shared::cta.
  Gather4 = 1 << 2,
  /// Tensor copies in mode tile::gather4 to shared::cluster, and their
  /// prefetch.
  Gather4Cluster = 1 << 3,
  /// Tensor copies in mode tile::scatter4.
  Scatter4 = 1 << 4,
  /// mma.sync m16n8k32 of e4m3 and e5m2 in hardware. Other chips from sm_89 on
  /// accept the instruction and convert to f16.
  FP8MMA = 1 << 5,
  /// ldmatrix of 8-bit elements, m16n16 transposed.
  LdMatrixB8 = 1 << 6,
  /// cvt between f16x2 and e4m3x2 or e5m2x2.
  FP8Conversion = 1 << 7,
  /// cvt from and to e2m1x2, e2m3x2, e3m2x2 and ue8m0x2.
  NarrowConversion = 1 << 8,
  /// Global accesses of 32 bytes.
  Access256 = 1 << 9,
  /// redux.sync of f32.
  ReduxF32 = 1 << 10,
  /// Tensor memory: tcgen05, and copies for a pair of blocks.
  TensorMemory = 1 << 11,
  /// wgmma.
  WGMMA = 1 << 12,
  /// mma.sync with scales of blocks.
  BlockScaleMMA = 1 << 13,
  /// cvt with stochastic rounding.
  StochasticRounding = 1 << 14,
  /// tcgen05.mma of 8-bit integers.
  TensorIntegers = 1 << 15,
  /// tcgen05.mma that scales what it adds to.
  TensorScale = 1 << 16,
  /// tcgen05.shift.
  TensorShift = 1 << 17,
  /// add, mul and fma of two f32 in one instruction. Other chips from sm_100 on
  /// accept these in PTX, and take two instructions.
  PairedF32 = 1 << 18,
  /// Clusters of thread blocks, which access each other's shared memory.
  Clusters = 1 << 19,
  LLVM_MARK_AS_BITMASK_ENUM(/*LargestValue=*/Clusters)
};

/// The suffix of the name of a chip, which says which chips run its code.
enum class Variant : uint8_t {
  Base,         ///< no suffix: this chip and newer ones
  Architecture, ///< a: this chip only
  Family,       ///< f: this chip and newer ones of its family
};

/// An NVIDIA chip that both LLVM's NVPTX back end and ptxas support.
struct Chip {
  /// The name, such as `sm_90a`.
  StringLiteral name;
  /// Major * 10 + minor.
  unsigned computeCapability;
  Variant variant;
  /// The oldest PTX version, as major * 10 + minor, with all features of the
  /// chip. More drivers load an older version.
  unsigned ptxVersion;
  /// The maximum shared memory of a block in kilobytes, with opt-in above 48.
  unsigned sharedKilobytes;
  /// The features of the chip.
  Feature supported;

  /// The parameter `features` of `#nvvm.target`, such as `+ptx88`.
  std::string getFeatures() const;

  /// The maximum shared memory of a block in bytes, static and dynamic.
  int64_t getSharedMemory() const { return int64_t{sharedKilobytes} * 1024; }

  /// Whether a multiprocessor has room for two blocks with `bytes` of shared
  /// memory each. It has a kilobyte more than a block may have, and takes one
  /// for each block (CUDA C++ Programming Guide, "Technical Specifications per
  /// Compute Capability").
  bool fitsTwice(int64_t bytes) const {
    constexpr int64_t reserved = 1024;
    return 2 * (bytes + reserved) <= getSharedMemory() + reserved;
  }

  /// Whether the chip has all of `wanted`.
  bool has(Feature wanted) const { return (supported & wanted) == wanted; }
};

/// All chips, oldest first, from sm_80 to sm_121f.
ArrayRef<Chip> getChips();

/// Returns the chip of this name, or null.
const Chip *lookupChip(StringRef name);

/// Returns the chips of these names, or reports an unknown one at `op`.
FailureOr<SmallVector<const Chip *>> lookupChips(Operation *op,
                                                 ArrayRef<std::string> names);

/// Returns the chip of the `#nvvm.target`s of the enclosing `gpu.module`, or of
/// `op` if it is one. Returns null if there is no module, if the module has no
/// targets or several chips, or if the table does not have the chip.
const Chip *getTargetChip(Operation *op);

/// Whether a name may be that of a function or variable in PTX (PTX ISA,
/// Identifiers).
bool isPTXIdentifier(StringRef name);

/// Returns the message for a name that may not.
StringRef getIdentifierRule();

/// Whether `op` is in a `gpu.module` or in the body of a `gpu.launch`.
bool isInGPUCode(Operation *op);

/// Returns the name of a single feature in diagnostics, such as `gather4`.
StringRef getFeatureName(Feature feature);

/// Describes the chips that have a single feature, such as `sm_100 or newer`.
std::string getChipsWith(Feature feature);

/// Returns the message for an unknown chip:
/// `unknown chip 'sm_99'; known are sm_80, …`.
std::string getUnknownChipMessage(StringRef name);

/// Returns the message for a single feature that `chip` does not have:
/// `requires sm_100 or newer for gather4, but the target is sm_90a`.
std::string getMissingFeatureMessage(const Chip &chip, Feature feature);

} // namespace mlir::kvcache

#endif // KVCACHE_TARGET_CHIP_H
