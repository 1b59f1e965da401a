#include "worker/data/cifar_dataset.h"

#include <array>
#include <functional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "worker/data/inflating_file.h"

namespace sluice {
namespace {

constexpr int64_t kSide = 32;
constexpr int64_t kChannels = 3;
constexpr size_t kPixels = kChannels * kSide * kSide;
constexpr size_t kMostLabelBytes = 2;
constexpr uint64_t kMostRecords = (uint64_t{1} << 32) / kPixels;

// A record, and the byte of the file at which it begins.
using TakeRecord = std::function<absl::Status(absl::Span<const uint8_t> record, uint64_t begin)>;

absl::StatusOr<std::string> FindFile(const std::string& folder, const std::string& name) {
  return FindEitherForm(absl::StrCat(folder, "/", name),
                        "give the folder of the data set's binary form with --data-dir");
}

absl::Status ForEachRecord(const std::string& path, size_t size, const TakeRecord& take) {
  InflatingFile file(path);
  const absl::Status opened = file.Open();
  if (!opened.ok()) return opened;
  std::array<uint8_t, kMostLabelBytes + kPixels> buffer;
  const absl::Span<uint8_t> record = absl::MakeSpan(buffer).subspan(0, size);
  for (uint64_t begin = 0;; begin += size) {
    const absl::StatusOr<size_t> read = file.Read(record);
    if (!read.ok()) return read.status();
    if (*read == 0 && begin > 0) return absl::OkStatus();
    if (*read < size) {
      return absl::DataLossError(
          absl::StrCat(path, ": the file ends at byte ", begin + *read, ", expected the ", size,
                       " bytes of a record from byte ", begin, "; it is truncated: copy it again"));
    }
    const absl::Status taken = take(record, begin);
    if (!taken.ok()) return absl::Status(taken.code(), absl::StrCat(path, ": ", taken.message()));
  }
}

// `take` gets the records of all files of the split, and none beyond kMostRecords.
absl::Status ForEachRecordOf(const CifarForm& form, const std::string& folder, DatasetSplit split,
                             const TakeRecord& take) {
  uint64_t records = 0;
  const auto take_few = [&](absl::Span<const uint8_t> record, uint64_t begin) {
    if (++records <= kMostRecords) return take(record, begin);
    return absl::InvalidArgumentError(absl::StrCat("the split has more than ", kMostRecords,
                                                   " images, expected at most so many"));
  };
  for (const std::string& name : split == DatasetSplit::kTrain ? form.train : form.test) {
    const auto path = FindFile(folder, name);
    if (!path.ok()) return path.status();
    const absl::Status read = ForEachRecord(*path, form.label_bytes + kPixels, take_few);
    if (!read.ok()) return read;
  }
  return absl::OkStatus();
}

}  // namespace

CifarForm Cifar10() {
  return {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
           "data_batch_5.bin"},
          {"test_batch.bin"},
          1,
          10,
          {{0.4914F, 0.2470F}, {0.4822F, 0.2435F}, {0.4465F, 0.2616F}}};
}

CifarForm Cifar100() {
  return {{"train.bin"},
          {"test.bin"},
          2,
          100,
          {{0.5071F, 0.2673F}, {0.4865F, 0.2564F}, {0.4409F, 0.2762F}}};
}

CifarForm Svhn() {
  return {{"train.bin"},
          {"test.bin"},
          1,
          10,
          {{0.4377F, 0.1980F}, {0.4438F, 0.2010F}, {0.4728F, 0.1970F}}};
}

absl::StatusOr<Dataset> LoadCifarDataset(const CifarForm& form, const std::string& folder,
                                         DatasetSplit split) {
  Dataset data;
  data.form = {kChannels, kSide, kSide, form.classes};
  data.normalization = form.normalization;
  const size_t last = form.label_bytes - 1;
  const absl::Status read = ForEachRecordOf(
      form, folder, split, [&](absl::Span<const uint8_t> record, uint64_t begin) -> absl::Status {
        const uint8_t label = record[last];
        if (label >= form.classes) {
          return absl::InvalidArgumentError(absl::StrCat("the label at byte ", begin + last, " is ",
                                                         label, ", expected 0 to ",
                                                         form.classes - 1));
        }
        data.labels.push_back(label);
        data.images.insert(data.images.end(), record.begin() + last + 1, record.end());
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  return data;
}

absl::StatusOr<uint64_t> CountCifarSamples(const CifarForm& form, const std::string& folder,
                                           DatasetSplit split) {
  uint64_t count = 0;
  const absl::Status read =
      ForEachRecordOf(form, folder, split, [&](absl::Span<const uint8_t>, uint64_t) {
        ++count;
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  return count;
}

}  // namespace sluice
