//===- Images.cpp - The image for a device --------------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Images.h"
#include "kvcache/Runtime/Support.h"

#include <cstring>
#include <utility>

using namespace mlir::kvcache::runtime;
using namespace mlir::kvcache::runtime::cuda;

namespace {
enum class Format { Cubin, FatBinary, PTX };

/// The parsed name of a chip.
struct Chip {
  /// Major * 10 + minor.
  int capability = 0;
  /// 'a', 'f' or 0.
  char suffix = 0;

  int getMajor() const { return capability / 10; }
};

/// The suitability of an image, in ascending order.
enum class Fit { None, Compiled, Base, Family, Architecture };
} // namespace

static Format getFormat(const KVCacheImage &image) {
  auto startsWith = [&](const char (&magic)[5]) {
    return image.size >= 4 && std::memcmp(image.data, magic, 4) == 0;
  };
  if (startsWith("\x7f"
                 "ELF"))
    return Format::Cubin;
  // The magic number 0xba55ed50 of CUDA's fatbinary.h.
  return startsWith("\x50\xed\x55\xba") ? Format::FatBinary : Format::PTX;
}

static std::optional<Chip> parseChip(const char *name) {
  if (std::strncmp(name, "sm_", 3) != 0)
    return std::nullopt;
  const char *at = name + 3;
  Chip chip;
  for (; *at >= '0' && *at <= '9' && chip.capability < 1000; ++at)
    chip.capability = chip.capability * 10 + (*at - '0');
  if (*at == 'a' || *at == 'f')
    chip.suffix = *at++;
  return chip.capability >= 10 && *at == 0 ? std::optional(chip) : std::nullopt;
}

/// CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility" and
/// "Architecture-specific and Family-specific Features".
static Fit getFit(const Chip &chip, Format format, int capability) {
  if (chip.suffix == 'a')
    return chip.capability == capability ? Fit::Architecture : Fit::None;
  if (chip.capability > capability)
    return Fit::None;
  bool sameMajor = chip.getMajor() == capability / 10;
  if (chip.suffix == 'f')
    return sameMajor ? Fit::Family : Fit::None;
  if (sameMajor && format != Format::PTX)
    return Fit::Base;
  return format == Format::Cubin ? Fit::None : Fit::Compiled;
}

const KVCacheImage *cuda::selectImage(const KVCacheBinary &binary,
                                      int capability) {
  const KVCacheImage *best = nullptr;
  std::pair<Fit, int> bestFit(Fit::None, 0);
  for (int64_t i = 0; i < binary.numImages; ++i) {
    const KVCacheImage &image = binary.images[i];
    if (isEmulated(image))
      continue;
    std::optional<Chip> chip = parseChip(image.chip);
    if (!chip) {
      fail("module @" + std::string(binary.name) +
           " has an image for the unknown chip '" + image.chip + "'");
      return nullptr;
    }
    std::pair<Fit, int> fit(getFit(*chip, getFormat(image), capability),
                            chip->capability);
    if (fit.first != Fit::None && fit > bestFit) {
      best = &image;
      bestFit = fit;
    }
  }
  if (!best)
    fail("module @" + std::string(binary.name) +
         " has no code for a device of compute capability " +
         std::to_string(capability / 10) + "." +
         std::to_string(capability % 10) + ": it is for " + listChips(binary));
  return best;
}
