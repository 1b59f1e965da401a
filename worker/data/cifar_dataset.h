// Reads CIFAR-10 and CIFAR-100 in their binary form (Krizhevsky 2009, "Learning Multiple Layers of
// Features from Tiny Images"; https://www.cs.toronto.edu/~kriz/cifar.html), and other images of
// 32 × 32 pixels in that form.
//
// A file is a sequence of records and nothing else: one or two bytes of labels, of which the last
// counts, then 3,072 bytes of pixels: 1,024 red ones row by row, 1,024 green, 1,024 blue.

#ifndef SLUICE_WORKER_DATA_CIFAR_DATASET_H_
#define SLUICE_WORKER_DATA_CIFAR_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset.h"

namespace sluice {

// The files and labels of a data set in this form; the rest is alike in all of them.
struct CifarForm {
  std::vector<std::string> train;  // the files of a split, in order
  std::vector<std::string> test;
  int label_bytes = 1;  // of a record
  int64_t classes = 10;
  std::vector<Normalization> normalization;
};

CifarForm Cifar10();   // data_batch_1.bin to data_batch_5.bin, test_batch.bin
CifarForm Cifar100();  // train.bin, test.bin; of the two labels the fine one, 0 to 99, counts
// SVHN's cropped digits (Netzer et al. 2011), which are published in another form: train.bin and
// test.bin in the form of CIFAR-10. svhn_to_cifar.py in this folder writes them.
CifarForm Svhn();

// Reads one split from the folder. Each file is there plain or with ".gz" (plain is preferred).
//
// Every error names the file, and the byte if there is one:
//   NOT_FOUND         a file exists in neither form
//   DATA_LOSS         a file is empty, ends within a record, or is broken as gzip
//   INVALID_ARGUMENT  a label is not below `classes`, or the images of a split take more than 4 GiB
absl::StatusOr<Dataset> LoadCifarDataset(const CifarForm& form, const std::string& folder,
                                         DatasetSplit split);

// The number of samples of that split. Reads the files, but keeps nothing of them.
absl::StatusOr<uint64_t> CountCifarSamples(const CifarForm& form, const std::string& folder,
                                           DatasetSplit split);

}  // namespace sluice

#endif  // SLUICE_WORKER_DATA_CIFAR_DATASET_H_
