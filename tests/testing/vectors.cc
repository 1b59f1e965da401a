#include "tests/testing/vectors.h"

#include <memory>
#include <string>
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

Layout ManyTensors(size_t count) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    tensors.push_back({number + std::string(80 - number.size(), '.'), i % 2 == 0 ? 1u : 2u});
  }
  return LayoutOf(tensors);
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
