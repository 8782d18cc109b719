//===- Geometry.cpp - TMA geometry for Python -----------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Geometry.h"

#include "kvcache/TMA/TensorMap.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::kvcache;
using tma::CacheShape;
using tma::OpenTensorMap;

/// The swizzle with a span of so many bytes.
static tma::Swizzle toSwizzle(int64_t span) {
  for (tma::Swizzle swizzle : {tma::Swizzle::None, tma::Swizzle::Span32,
                               tma::Swizzle::Span64, tma::Swizzle::Span128})
    if (tma::getSpan(swizzle) == span)
      return swizzle;
  throw nb::value_error("no swizzle has this span");
}

namespace {
/// The sizes that describe a descriptor, by name; absent ones are 0.
class Sizes {
public:
  explicit Sizes(nb::dict values) : values(std::move(values)) {}

  int64_t operator[](const char *name) const {
    return values.contains(name) ? nb::cast<int64_t>(values[name]) : 0;
  }
  CacheShape getCache() const {
    const Sizes &sizes = *this;
    return {sizes["element_bytes"], sizes["num_heads"],
            sizes["head_size"],     sizes["page_size"],
            sizes["token_stride"],  sizes["head_stride"]};
  }
  tma::Extents getExtents() const {
    const Sizes &sizes = *this;
    return {sizes["num_rows"], sizes["num_pages"], sizes["page_stride"]};
  }

private:
  nb::dict values;
};
} // namespace

static OpenTensorMap getTensorMap(const std::string &kind, const Sizes &sizes) {
  CacheShape cache = sizes.getCache();
  tma::Swizzle swizzle = toSwizzle(sizes["span"]);
  int64_t rows = sizes["rows"], columns = sizes["columns"];
  int64_t paddedDepth = sizes["padded_depth"];
  if (kind == "tile")
    return tma::getTile(cache, rows, columns, swizzle);
  if (kind == "matrix")
    return tma::getMatrixTile(
        cache, rows, columns,
        sizes["mn_major"] ? tma::Major::MN : tma::Major::K, swizzle);
  if (kind == "paged")
    return tma::getPagedTile(cache, rows, columns, swizzle);
  if (kind == "ragged")
    return tma::getRaggedTile(cache, rows, columns, swizzle);
  if (kind == "rope")
    return tma::getRopeTile(cache, rows, columns, paddedDepth, swizzle);
  if (kind == "gather4")
    return tma::getGather4Tile(cache, cache.elementBytes, sizes["tile_width"],
                               sizes["tile_stride"], swizzle);
  if (kind == "rope_gather4")
    return tma::getRopeGather4Tile(cache, sizes["tile_width"], paddedDepth,
                                   swizzle);
  if (kind == "scale")
    return tma::getScaleTile(cache, rows);
  throw nb::value_error("no descriptor of this kind");
}

/// dims, strides (without the innermost), box, offset, and the broken limit.
static nb::tuple pyTensorMap(const std::string &kind, nb::dict values) {
  Sizes sizes(std::move(values));
  tma::TensorMap map =
      tma::resolve(getTensorMap(kind, sizes), sizes.getExtents());
  nb::list dims, strides, box;
  for (int dim = 0; dim < map.rank; ++dim) {
    dims.append(map.dims[dim]);
    box.append(map.box[dim]);
    if (dim > 0)
      strides.append(map.strides[dim]);
  }
  return nb::make_tuple(nb::tuple(dims), nb::tuple(strides), nb::tuple(box),
                        map.offset, tma::findBrokenLimit(map));
}

/// The limit that a tensor of these sizes breaks; `strides` has all but the
/// innermost.
static std::optional<std::string>
pyBrokenLimit(const std::vector<int64_t> &dims,
              const std::vector<int64_t> &strides,
              const std::vector<int64_t> &box, int64_t elementBytes,
              int64_t span, int64_t offset) {
  size_t rank = dims.size();
  if (rank < 1 || rank > tma::TensorMap::kMaxRank || box.size() != rank ||
      strides.size() != rank - 1)
    throw nb::value_error("expects 1 to 5 dimensions, with a box and strides");
  tma::TensorMap map;
  map.elementBytes = elementBytes;
  map.swizzle = toSwizzle(span);
  map.offset = offset;
  for (size_t dim = 0; dim < rank; ++dim)
    map.add(dims[dim], dim == 0 ? 1 : strides[dim - 1], box[dim]);
  return tma::findBrokenLimit(map);
}

void python::addGeometry(nb::module_ &module) {
  module.def("broken_limit", &pyBrokenLimit, nb::arg("dims"),
             nb::arg("strides"), nb::arg("box"), nb::arg("element_bytes"),
             nb::arg("span"), nb::arg("offset"));
  module.def("tensor_map", &pyTensorMap, nb::arg("kind"), nb::arg("sizes"));
  module.def(
      "tile_offset",
      [](int64_t rows, int64_t columns, int64_t elementBytes, int64_t span,
         int64_t row, int64_t column) {
        return tma::TileLayout{rows, columns, elementBytes, toSwizzle(span)}
            .getOffset(row, column);
      },
      nb::arg("rows"), nb::arg("columns"), nb::arg("element_bytes"),
      nb::arg("span"), nb::arg("row"), nb::arg("column"));
  module.def(
      "padded_depth",
      [](int64_t elementBytes, int64_t span, int64_t depth) {
        return tma::getPaddedDepth(elementBytes, toSwizzle(span), depth);
      },
      nb::arg("element_bytes"), nb::arg("span"), nb::arg("depth"));
  module.def(
      "gather4_box_width",
      [](int64_t elementBytes, int64_t width, int64_t span) {
        return tma::getGather4BoxWidth(elementBytes, width, toSwizzle(span));
      },
      nb::arg("element_bytes"), nb::arg("width"), nb::arg("span"));
  module.def("scale_window", &tma::getScaleWindow, nb::arg("element_bytes"),
             nb::arg("rows"));
  module.def(
      "folded_chunks",
      [](int64_t elementBytes, int64_t span, int64_t headSize, int64_t rows,
         int64_t columns, int64_t boxRows, bool chunkInner) {
        return tma::getFoldedChunks(elementBytes, toSwizzle(span), headSize,
                                    rows, columns, boxRows, chunkInner);
      },
      nb::arg("element_bytes"), nb::arg("span"), nb::arg("head_size"),
      nb::arg("rows"), nb::arg("columns"), nb::arg("box_rows"),
      nb::arg("chunk_inner"));
}
