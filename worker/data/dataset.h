// Labelled samples in memory, for models that classify.
//
// load_dataset.h fills a Dataset from files; batch.h takes batches from it.

#ifndef SLUICE_WORKER_DATA_DATASET_H_
#define SLUICE_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <vector>

namespace sluice {

enum class DatasetSplit { kTrain, kTest };

// The form of a sample, and how many classes there are. The default is that of Fashion-MNIST.
// Samples that are not images have one channel, one row, and a column for each feature.
struct SampleForm {
  int64_t channels = 1;
  int64_t rows = 28;
  int64_t columns = 28;
  int64_t classes = 10;

  int64_t elements() const { return channels * rows * columns; }
};

// The mean and the standard deviation of a channel's pixels in the training images, where black is
// 0 and full intensity is 1. A model sees (pixel − mean) / deviation. The default is that of
// Fashion-MNIST.
struct Normalization {
  float mean = 0.2860F;
  float deviation = 0.3530F;
};

// Rows of numbers of which most are 0. Row i has values[k] in column columns[k], for each k in
// [begins[i], begins[i + 1]). The columns of a row ascend.
struct SparseRows {
  std::vector<uint64_t> begins = {0};
  std::vector<uint32_t> columns;
  std::vector<float> values;
};

struct Dataset {
  SampleForm form;
  std::vector<Normalization> normalization = {{}};  // of images: one for each channel
  // Images: size() * form.elements() bytes, 0 (black) to 255, in the order image, channel, row,
  // column. Empty if the samples are not images: then they are `features`.
  std::vector<uint8_t> images;
  SparseRows features;
  std::vector<uint8_t> labels;  // one for each sample, below form.classes

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_DATASET_H_
