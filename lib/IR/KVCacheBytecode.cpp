//===- KVCacheBytecode.cpp - The dialect in bytecode ----------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KVCacheBytecode.h"

#include "kvcache/IR/TensorMapOps.h"
#include "kvcache/Version.h"

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kvcache;

namespace {

/// The version of the bytecode, which does not depend on the patch version.
struct Version : DialectVersion {
  uint64_t major = KVCACHE_VERSION_MAJOR;
  uint64_t minor = KVCACHE_VERSION_MINOR;

  bool operator<(const Version &other) const {
    return std::tie(major, minor) < std::tie(other.major, other.minor);
  }
  std::string str() const { return (Twine(major) + "." + Twine(minor)).str(); }
};

/// Reads the number of an enum case, which `symbolize` must accept.
template <typename Enum>
LogicalResult readEnum(DialectBytecodeReader &reader, Enum &value,
                       std::optional<Enum> (*symbolize)(uint32_t)) {
  uint64_t number;
  if (failed(reader.readVarInt(number)))
    return failure();
  std::optional<Enum> known =
      llvm::isUInt<32>(number) ? symbolize(number) : std::nullopt;
  if (!known)
    return reader.emitError("expects the number of an enum case, got ")
           << number;
  value = *known;
  return success();
}

LogicalResult readElement(DialectBytecodeReader &reader, Type &type) {
  return reader.readType(type);
}
LogicalResult readElement(DialectBytecodeReader &reader, int64_t &number) {
  return reader.readSignedVarInt(number);
}

/// Reads a list. The reader's own functions reserve memory for the length that
/// a damaged file gives.
template <typename T>
LogicalResult readElements(DialectBytecodeReader &reader,
                           SmallVector<T> &elements) {
  uint64_t size;
  if (failed(reader.readVarInt(size)))
    return failure();
  while (size--)
    if (failed(readElement(reader, elements.emplace_back())))
      return failure();
  return success();
}

/// Converts a parameter to the form that its attribute or type takes.
template <typename T> const T &asParameter(const T &value) { return value; }
template <typename T> ArrayRef<T> asParameter(const SmallVector<T> &values) {
  return values;
}

/// Returns the attribute or type with these parameters. If they are invalid,
/// emits an error and returns null.
template <typename T, typename... Args>
T getChecked(DialectBytecodeReader &reader, MLIRContext *context,
             const Args &...args) {
  return T::getChecked([&] { return reader.emitError(); }, context,
                       asParameter(args)...);
}

LogicalResult readOptionalType(DialectBytecodeReader &reader, Type &type) {
  bool isPresent;
  if (failed(reader.readBool(isPresent)))
    return failure();
  return isPresent ? reader.readType(type) : success();
}

void writeOptionalType(DialectBytecodeWriter &writer, Type type) {
  writer.writeOwnedBool(static_cast<bool>(type));
  if (type)
    writer.writeType(type);
}

/// Whether a type has parameters that the first encodings do not hold.
bool hasLayoutOrTable(CacheTypeInterface type) {
  return type.getLayout() || type.getScaleLayout() ||
         type.getTable() != TableKind::Dense;
}

/// Whether a type has parameters of groups that the encodings before do not
/// hold.
bool isGrouped(CacheTypeInterface type) {
  return type.hasZeroPoints() || type.getTokenGranularity() != 1;
}

#include "kvcache/IR/KVCacheBytecode.cpp.inc"

struct KVCacheBytecodeInterface : BytecodeDialectInterface {
  explicit KVCacheBytecodeInterface(Dialect *dialect)
      : BytecodeDialectInterface(dialect) {}

  Attribute readAttribute(DialectBytecodeReader &reader) const override {
    return ::readAttribute(getContext(), reader);
  }
  Type readType(DialectBytecodeReader &reader) const override {
    return ::readType(getContext(), reader);
  }
  LogicalResult writeAttribute(Attribute attribute,
                               DialectBytecodeWriter &writer) const override {
    return ::writeAttribute(attribute, writer);
  }
  LogicalResult writeType(Type type,
                          DialectBytecodeWriter &writer) const override {
    return ::writeType(type, writer);
  }

  void writeVersion(DialectBytecodeWriter &writer) const override {
    Version version;
    writer.writeVarInt(version.major);
    writer.writeVarInt(version.minor);
  }
  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override {
    auto version = std::make_unique<Version>();
    if (failed(reader.readVarInt(version->major)) ||
        failed(reader.readVarInt(version->minor)))
      return nullptr;
    if (Version() < *version) {
      reader.emitError("expects the 'kvcache' dialect of version ")
          << Version().str() << " or earlier, got " << version->str();
      return nullptr;
    }
    return version;
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Attributes of ops
//===----------------------------------------------------------------------===//

// Files have the height of gathered tiles always: it was not optional when
// their encoding was fixed.

template <typename OpTy>
static void writeTileHeight(DialectBytecodeWriter &writer, OpTy op) {
  writer.writeAttribute(
      Builder(op.getContext()).getI64IntegerAttr(op.getTileHeight()));
}

LogicalResult
CreateGather4TMATileOp::readProperties(DialectBytecodeReader &reader,
                                       OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  return success(
      succeeded(reader.readOptionalAttribute(properties.dtype)) &&
      succeeded(reader.readOptionalAttribute(properties.l2_promotion)) &&
      succeeded(reader.readOptionalAttribute(properties.swizzle)) &&
      succeeded(reader.readAttribute(properties.tile_height)) &&
      succeeded(reader.readOptionalAttribute(properties.tile_stride)) &&
      succeeded(reader.readAttribute(properties.tile_width)));
}

void CreateGather4TMATileOp::writeProperties(DialectBytecodeWriter &writer) {
  const Properties &properties = getProperties();
  writer.writeOptionalAttribute(properties.dtype);
  writer.writeOptionalAttribute(properties.l2_promotion);
  writer.writeOptionalAttribute(properties.swizzle);
  writeTileHeight(writer, *this);
  writer.writeOptionalAttribute(properties.tile_stride);
  writer.writeAttribute(properties.tile_width);
}

LogicalResult
CreateRopeGather4TMATileOp::readProperties(DialectBytecodeReader &reader,
                                           OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  return success(
      succeeded(reader.readOptionalAttribute(properties.l2_promotion)) &&
      succeeded(reader.readAttribute(properties.padded_depth)) &&
      succeeded(reader.readOptionalAttribute(properties.swizzle)) &&
      succeeded(reader.readAttribute(properties.tile_height)) &&
      succeeded(reader.readAttribute(properties.tile_width)));
}

void CreateRopeGather4TMATileOp::writeProperties(
    DialectBytecodeWriter &writer) {
  const Properties &properties = getProperties();
  writer.writeOptionalAttribute(properties.l2_promotion);
  writer.writeAttribute(properties.padded_depth);
  writer.writeOptionalAttribute(properties.swizzle);
  writeTileHeight(writer, *this);
  writer.writeAttribute(properties.tile_width);
}

void kvcache::addBytecodeInterface(KVCacheDialect *dialect) {
  dialect->addInterfaces<KVCacheBytecodeInterface>();
}
