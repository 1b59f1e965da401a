// Reads MNIST and data sets in the same form: images and labels in IDX files.

#ifndef SLUICE_WORKER_DATA_IDX_DATASET_H_
#define SLUICE_WORKER_DATA_IDX_DATASET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"

namespace sluice {

// Reads one split of grey images of 28 × 28 pixels, with labels 0 to 9, from the folder: the files
// {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte, each plain or with ".gz"
// (plain is preferred). The normalization is that of Fashion-MNIST.
//
// Every error names the file and what to do next:
//   NOT_FOUND         a file exists in neither form
//   INVALID_ARGUMENT  images are not 28 × 28, a label is above 9, images and labels differ in
//                     number
//   others            the errors of ReadIdx()
absl::StatusOr<Dataset> LoadIdxDataset(const std::string& folder, DatasetSplit split);

// The number of samples of that split, from the file of its labels.
absl::StatusOr<uint64_t> CountIdxSamples(const std::string& folder, DatasetSplit split);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_IDX_DATASET_H_
