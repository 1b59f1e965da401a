// The data sets that sluice_train knows by name, and how they are read.

#ifndef SLUICE_WORKER_DATA_LOAD_DATASET_H_
#define SLUICE_WORKER_DATA_LOAD_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"

namespace sluice {

struct DatasetSource {
  std::string name = "fashion-mnist";  // one of DatasetNames()
  std::string folder;                  // empty: where Debian's package puts the data set
};

// "fashion-mnist", "mnist", "cifar10", "cifar100", "svhn" and "libsvm". The headers of their
// readers say which files they are: idx_dataset.h, cifar_dataset.h, libsvm_dataset.h.
std::vector<std::string> DatasetNames();

// Reads one split. The errors are those of the reader; INVALID_ARGUMENT for another name, or for no
// folder where Debian has no package of the data set; RESOURCE_EXHAUSTED if memory does not
// suffice.
absl::StatusOr<Dataset> LoadDataset(const DatasetSource& source, DatasetSplit split);

// The number of samples of that split. Faster than LoadDataset() where the form of the files
// allows it.
absl::StatusOr<uint64_t> CountSamples(const DatasetSource& source, DatasetSplit split);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_LOAD_DATASET_H_
