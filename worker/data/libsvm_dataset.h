// Reads text files in the form of LIBSVM (Chang and Lin 2011): a sample a line, as
//
//   LABEL INDEX:VALUE INDEX:VALUE …
//
// Indices count from 1 and ascend; what a line does not name is 0. A "#" begins a comment, and
// empty lines are left out. Labels are any numbers: −1 and 1, 0 and 1, or 1, 2, 3. The labels of
// the training file, sorted, become the classes 0, 1, 2 and so on.

#ifndef SLUICE_WORKER_DATA_LIBSVM_DATASET_H_
#define SLUICE_WORKER_DATA_LIBSVM_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"

namespace sluice {

// The largest index of a feature; the most samples and values of a file, which take 10 GiB of
// memory; and the longest line, in bytes.
inline constexpr uint32_t kMaxLibsvmIndex = uint32_t{1} << 24;
inline constexpr uint64_t kMaxLibsvmSamples = uint64_t{1} << 27;
inline constexpr uint64_t kMaxLibsvmValues = uint64_t{1} << 30;
inline constexpr size_t kMaxLibsvmLine = size_t{1} << 24;

// Reads train.libsvm or test.libsvm in the folder, plain or with ".gz" (plain is preferred). The
// form of both splits is that of the training file, so the test split reads that, too. Features
// that no training sample has are left out of the test split: no model has a weight for them.
//
// Every error names the file, and the line if there is one:
//   NOT_FOUND         a file exists in neither form
//   DATA_LOSS         a file has no sample, or is broken as gzip
//   INVALID_ARGUMENT  a line is not of that form or too long, an index is 0 or too large or does
//                     not ascend, a number is not finite, there are too many samples or values,
//                     there are not 2 to 256 different labels, or the test file has a label that
//                     the training file lacks
absl::StatusOr<Dataset> LoadLibsvmDataset(const std::string& folder, DatasetSplit split);

// The number of samples of that split: its lines with a label. Does not look at the labels.
absl::StatusOr<uint64_t> CountLibsvmSamples(const std::string& folder, DatasetSplit split);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_LIBSVM_DATASET_H_
