#include "worker/data/idx_dataset.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/data/idx_reader.h"
#include "worker/data/inflating_file.h"

namespace sluice {
namespace {

constexpr uint32_t kImageSide = 28;
constexpr int kImageRank = 3;
constexpr int kLabelRank = 1;
constexpr size_t kLabelsBegin = 8;  // what the header of an IDX file of rank 1 takes
constexpr uint8_t kLargestLabel = 9;
constexpr char kImages[] = "-images-idx3-ubyte";
constexpr char kLabels[] = "-labels-idx1-ubyte";

std::string PrefixOf(const std::string& folder, DatasetSplit split) {
  return absl::StrCat(folder, split == DatasetSplit::kTrain ? "/train" : "/t10k");
}

struct ReadFile {
  std::string path;  // the form that was read
  IdxArray array;
};

absl::StatusOr<ReadFile> ReadEitherForm(const std::string& plain, int rank) {
  const auto path = FindEitherForm(
      plain,
      "Debian's package dataset-fashion-mnist installs Fashion-MNIST; the folder of MNIST, which "
      "Debian does not package, is given with --dataset=mnist --data-dir=FOLDER");
  if (!path.ok()) return path.status();
  absl::StatusOr<IdxArray> array = ReadIdx(*path, rank);
  if (!array.ok()) return array.status();
  return ReadFile{*path, *std::move(array)};
}

absl::Status CheckImages(const ReadFile& images) {
  const std::vector<uint32_t>& dims = images.array.dims;
  if (dims[1] == kImageSide && dims[2] == kImageSide) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(images.path, ": the images' size at byte 8 is ",
                                                 dims[1], "x", dims[2], ", expected ", kImageSide,
                                                 "x", kImageSide));
}

absl::Status CheckLabels(const ReadFile& labels) {
  const std::vector<uint8_t>& data = labels.array.data;
  const auto bad =
      std::find_if(data.begin(), data.end(), [](uint8_t label) { return label > kLargestLabel; });
  if (bad == data.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(labels.path, ": the label at byte ",
                                                 kLabelsBegin + (bad - data.begin()), " is ", *bad,
                                                 ", expected 0 to ", kLargestLabel));
}

absl::Status CheckCounts(const ReadFile& images, const ReadFile& labels) {
  const uint32_t image_count = images.array.dims[0];
  const uint32_t label_count = labels.array.dims[0];
  if (image_count == label_count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      images.path, " holds ", image_count, " images and ", labels.path, " ", label_count,
      " labels (both at byte 4), expected as many; take both files from ", "one dataset"));
}

}  // namespace

absl::StatusOr<Dataset> LoadIdxDataset(const std::string& folder, DatasetSplit split) {
  const std::string prefix = PrefixOf(folder, split);
  absl::StatusOr<ReadFile> images = ReadEitherForm(prefix + kImages, kImageRank);
  if (!images.ok()) return images.status();
  absl::StatusOr<ReadFile> labels = ReadEitherForm(prefix + kLabels, kLabelRank);
  if (!labels.ok()) return labels.status();
  for (const absl::Status& check :
       {CheckImages(*images), CheckCounts(*images, *labels), CheckLabels(*labels)}) {
    if (!check.ok()) return check;
  }
  Dataset dataset;
  dataset.images = std::move(images->array.data);
  dataset.labels = std::move(labels->array.data);
  return dataset;
}

absl::StatusOr<uint64_t> CountIdxSamples(const std::string& folder, DatasetSplit split) {
  const auto labels = ReadEitherForm(PrefixOf(folder, split) + kLabels, kLabelRank);
  if (!labels.ok()) return labels.status();
  return labels->array.dims[0];
}

}  // namespace sluice
