#include "worker/torch/training/image_batch.h"

#include <algorithm>

namespace sluice {
namespace {

// Mean and standard deviation of Fashion-MNIST's training images; near enough for MNIST's.
constexpr float kMean = 0.2860F;
constexpr float kDeviation = 0.3530F;

}  // namespace

ImageBatch MakeImageBatch(const Dataset& data, absl::Span<const int64_t> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t pixels = data.rows * data.columns;
  ImageBatch batch;
  batch.images = torch::empty({count, 1, data.rows, data.columns});
  batch.labels = torch::empty({count}, torch::kInt64);
  auto* image = batch.images.data_ptr<float>();
  auto* label = batch.labels.data_ptr<int64_t>();
  for (const int64_t row : rows) {
    const uint8_t* const from = data.images.data() + row * pixels;
    image = std::transform(from, from + pixels, image, [](uint8_t pixel) {
      return (static_cast<float>(pixel) / 255.0F - kMean) / kDeviation;
    });
    *label++ = data.labels[row];
  }
  return batch;
}

}  // namespace sluice
