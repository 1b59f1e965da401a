#include "tests/testing/vectors.h"

#include <memory>
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

TensorChunk ChunkOf(uint64_t offset, absl::Span<const float> elements) {
  const auto values = std::make_shared<const Values>(elements.begin(), elements.end());
  TensorChunk chunk;
  chunk.offset = offset;
  if (!values->empty()) chunk.pieces.push_back(AsPiece(*values));
  chunk.owner = values;
  return chunk;
}

}  // namespace sluice
