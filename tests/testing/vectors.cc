#include "tests/testing/vectors.h"

#include <utility>

namespace sluice {

Layout LayoutOf(const std::vector<Tensor>& tensors) {
  std::vector<LayoutRange> ranges;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    LayoutRange range;
    range.name = tensor.name;
    range.shape = {tensor.size};
    range.kind = tensor.kind;
    range.offset = offset;
    range.length = tensor.size;
    offset += tensor.size;
    ranges.push_back(range);
  }
  return Layout::Create(std::move(ranges)).value();
}

Layout ParametersOnly(uint32_t size) { return LayoutOf({{"w", size}}); }

StagedChunk ChunkOf(uint64_t offset, absl::Span<const float> elements) {
  StagedChunk chunk;
  chunk.offset = offset;
  chunk.bytes.assign(reinterpret_cast<const char*>(elements.data()),
                     elements.size() * sizeof(float));
  return chunk;
}

}  // namespace sluice
