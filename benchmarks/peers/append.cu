// Writes new bf16 keys and values into the pages, as kvcache.append does.
//
//   blocks[lut[b, t / P], kv, layer, t % P, h, d] = new[row, h, d]
//   t = lengths[b] + row - row_offsets[b]
//   row_offsets[b] <= row < row_offsets[b + 1]
//
// keys and values bf16[N, H, D] with any distance from row to row, row_offsets
// and lengths u32, lut u32[B, max_pages], blocks bf16[pages, 2, layers, P, H,
// D] with any distance from page to page. A block has a row, and a thread 16
// bytes of its keys and of its values. Rows after the last offset are padding.
#include <cstdint>

struct Params {
  const void *keys;
  const void *values;
  const uint32_t *row_offsets;
  const uint32_t *lengths;
  const uint32_t *lut;
  void *blocks;
  // Distances in units of 16 bytes.
  uint64_t key_row, value_row, page;
  uint32_t batch, max_pages, num_layers, layer;
};

// The sequence of a row: its own number in a step of single tokens, or else
// found by a binary search.
__device__ __forceinline__ uint32_t find_sequence(const Params &p,
                                                  uint32_t row) {
  uint32_t guess = min(row, p.batch - 1);
  if (p.row_offsets[guess] <= row && row < p.row_offsets[guess + 1])
    return guess;
  uint32_t first = 0, count = p.batch;
  while (count > 1) {
    uint32_t half = count / 2;
    if (p.row_offsets[first + half] <= row)
      first += half;
    count -= half;
  }
  return first;
}

template <int P, int H, int D>
__device__ __forceinline__ void body(const Params &p) {
  constexpr int UNITS = H * D / 8; // of 16 bytes, in a row
  uint32_t row = blockIdx.x, unit = threadIdx.y * (D / 8) + threadIdx.x;
  if (row >= p.row_offsets[p.batch])
    return;
  uint4 key = ((const uint4 *)p.keys)[row * p.key_row + unit];
  uint4 value = ((const uint4 *)p.values)[row * p.value_row + unit];
  uint32_t b = find_sequence(p, row);
  uint32_t t = p.lengths[b] + row - p.row_offsets[b];
  uint64_t page = p.lut[(uint64_t)b * p.max_pages + t / P];
  uint64_t offset = ((uint64_t)p.layer * P + t % P) * UNITS + unit;
  uint4 *place = (uint4 *)p.blocks + page * p.page + offset;
  place[0] = key;
  place[(uint64_t)p.num_layers * P * UNITS] = value;
}

extern "C" __global__ void __launch_bounds__(128)
    append(const __grid_constant__ Params p) {
  body<16, 8, 128>(p);
}
