#include "common/checkpoint/reading/checkpoint_reader.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"
#include "common/checkpoint/file_names.h"
#include "common/checkpoint/reading/checkpoint_file.h"
#include "common/checkpoint/reading/checkpoint_head.h"
#include "common/checkpoint/reading/checkpoint_place.h"
#include "common/checkpoint/reading/constants_file.h"
#include "common/checkpoint/reading/part_file.h"
#include "common/checkpoint/reading/read_progress.h"

namespace sluice {
namespace {

// A file with a checkpoint's name must have that one: else somebody has renamed it.
absl::Status CheckName(const std::string& path, const CheckpointSource& source) {
  const auto name = CheckpointName::Parse(path.substr(path.rfind('/') + 1));
  if (!name.has_value()) return absl::OkStatus();
  if (name->incarnation == source.incarnation && name->step == source.step) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " holds step ", source.step.value(),
                                          " of incarnation ", source.incarnation.value(),
                                          ", which is not what its name says"));
}

bool IsStripe(const ReadableFile& file) {
  const ReadListener nobody;
  const auto header = CheckedReader(file, nobody).ReadHeader();
  return header.ok() && header->metadata.count(kStripeKey) > 0;
}

absl::Status HasNoModel(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is of a job whose workers step themselves: the server had their mean ",
                   "gradients, and no model; use what the program has saved"));
}

absl::Status NotAPart(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat(path,
                   " has one server's part of a checkpoint of several servers; name the first "
                   "server's file checkpoint-….safetensors, or its directory"));
}

}  // namespace

bool IsCheckpoint(FileSystem& files, const std::string& where) {
  const std::vector<std::string> words = WordsOfName(files, where);
  if (words.empty()) return false;
  if (words.size() > 1 || files.List(where).ok()) return true;
  const auto file = files.Open(where);
  if (!file.ok()) return false;
  const ReadListener nobody;
  const auto header = CheckedReader(**file, nobody).ReadHeader();
  if (!header.ok()) return false;
  if (header->metadata.count(kSavedStateKey) + header->metadata.count(kStripeKey) > 0) return true;
  return std::any_of(header->tensors.begin(), header->tensors.end(),
                     [](const SafeTensor& tensor) { return tensor.name == kChecksumName; });
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(FileSystem& files,
                                                        const std::string& where) {
  auto place = FindCheckpoint(files, where);
  if (!place.ok()) return place.status();
  const auto file = files.Open(place->file);
  if (!file.ok()) return file.status();
  auto contents = ReadContents(**file);
  if (!contents.ok() && IsStripe(**file)) return NotAPart(place->file);
  if (!contents.ok()) return InFile(place->file, contents.status());
  absl::Status sound = CheckName(place->file, contents->source);
  if (!sound.ok()) return sound;
  if (!contents->has_model) return HasNoModel(place->file);
  CheckpointReader reader(files, *std::move(place), *std::move(contents));
  sound = reader.Reader().Check(reader.contents_.source, reader.layout());
  if (!sound.ok()) return sound;
  return reader;
}

absl::Status CheckpointReader::ReadParameters(absl::Span<float> to,
                                              const ProgressOutput& output) const {
  ReadProgress progress(path(), layout(), contents_.source.slots.size(), output);
  return Reader().Read(contents_.source, layout(), {to}, progress.listener()).status();
}

absl::StatusOr<std::string> CheckpointReader::ReadConstants() const {
  return sluice::ReadConstants(files_, DirectoryOf(path()), contents_.source.job_id,
                               layout().constants());
}

absl::StatusOr<HeldTable> CheckpointReader::ReadTable(absl::string_view name) const {
  const std::vector<TableSpec>& tables = layout().tables();
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const TableSpec& table) { return table.name == name; });
  if (found == tables.end()) {
    const std::string names = absl::StrJoin(
        tables, ", ", [](std::string* text, const TableSpec& table) { *text += table.name; });
    return absl::NotFoundError(
        absl::StrCat(path(), " has no table \"", Shown(name),
                     "\"; its tables are: ", names.empty() ? "none" : names));
  }
  auto read = Reader().Read(contents_.source, layout(), {}, nullptr);
  if (!read.ok()) return read.status();
  const auto rows = Reader().OpenRows(contents_.source, layout(), std::move(read->servers));
  if (!rows.ok()) return rows.status();
  return HeldTable::Read(**rows, static_cast<uint32_t>(found - tables.begin()), found->width);
}

}  // namespace sluice
