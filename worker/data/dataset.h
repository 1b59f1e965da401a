#ifndef SLUICE_WORKER_DATA_DATASET_H_
#define SLUICE_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Labelled grey images in memory, as the example models take them: 28x28 pixels, labels 0 to 9.
struct Dataset {
  int rows = 0;
  int columns = 0;
  std::vector<uint8_t> images;  // size() * rows * columns, row-major, 0 (black) to 255
  std::vector<uint8_t> labels;  // one per image

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

enum class DatasetSplit { kTrain, kTest };

// Reads one split from the folder `data_dir`: the files {train,t10k}-images-idx3-ubyte and
// {train,t10k}-labels-idx1-ubyte, each plain or with ".gz" (plain is preferred).
//
// Every error names the file and what to do next:
//   NOT_FOUND         a file exists in neither form
//   INVALID_ARGUMENT  images are not 28x28, a label is above 9, images and labels differ in number
//   others            the errors of ReadIdx()
absl::StatusOr<Dataset> LoadDataset(const std::string& data_dir, DatasetSplit split);

// The number of samples of that split, from the file of its labels. The errors of LoadDataset().
absl::StatusOr<uint64_t> CountSamples(const std::string& data_dir, DatasetSplit split);

// The folder where `dataset` ("fashion-mnist" or "mnist") is looked for when no other is given.
// INVALID_ARGUMENT for any other name. Debian packages the first only.
absl::StatusOr<std::string> DefaultDataDir(absl::string_view dataset);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_DATASET_H_
