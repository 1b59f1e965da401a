#include "common/checkpoint/reading/checkpoint_place.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint/file_names.h"

namespace sluice {
namespace {

bool Exists(FileSystem& files, const std::string& path) {
  return files.List(path).ok() || files.Open(path).ok();
}

absl::Status NoCheckpointIn(const std::string& directory, bool has_stripes) {
  return absl::NotFoundError(absl::StrCat(
      directory, " has no checkpoint (checkpoint-*.safetensors)",
      has_stripes
          ? ", but one server's parts of them; name the directory of the first server, then "
            "with a comma between this one"
          : "; expected a server's --checkpoint-dir, of several servers that of the first "
            "one"));
}

// The checkpoints in a directory, whose names these are, the newest first.
absl::StatusOr<std::vector<CheckpointName>> NewestFirst(const std::string& directory,
                                                        const std::vector<std::string>& names) {
  std::vector<CheckpointName> checkpoints;
  bool has_stripes = false;
  for (const std::string& file : names) {
    has_stripes = has_stripes || StripeName::Parse(file).has_value();
    const auto name = CheckpointName::Parse(file);
    if (name.has_value()) checkpoints.push_back(*name);
  }
  if (checkpoints.empty()) return NoCheckpointIn(directory, has_stripes);
  std::sort(checkpoints.rbegin(), checkpoints.rend());
  return checkpoints;
}

}  // namespace

std::vector<std::string> WordsOfName(FileSystem& files, const std::string& name) {
  if (Exists(files, name)) return {name};
  return absl::StrSplit(name, ',', absl::SkipEmpty());
}

CheckpointPlace PlaceOf(std::string file, const std::vector<std::string>& others) {
  CheckpointPlace place = {{DirectoryOf(file)}, std::move(file)};
  place.directories.insert(place.directories.end(), others.begin(), others.end());
  return place;
}

absl::Status CheckDirectories(FileSystem& files, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const auto names = files.List(directory);
    if (!names.ok()) return names.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CheckpointPlace>> FindCheckpoints(FileSystem& files,
                                                             const std::string& name) {
  std::vector<std::string> others = WordsOfName(files, name);
  if (others.empty()) {
    return absl::InvalidArgumentError(
        "found no name of a checkpoint, expected its file or its directory");
  }
  const std::string first = others.front();
  others.erase(others.begin());
  const auto names = files.List(first);
  std::vector<CheckpointPlace> places;
  if (!names.ok()) {
    places.push_back(PlaceOf(first, others));
  } else {
    const auto checkpoints = NewestFirst(first, *names);
    if (!checkpoints.ok()) return checkpoints.status();
    for (const CheckpointName& checkpoint : *checkpoints) {
      places.push_back(PlaceOf(absl::StrCat(first, "/", checkpoint.FileName()), others));
    }
  }
  const absl::Status there = CheckDirectories(files, others);
  if (!there.ok()) return there;
  return places;
}

absl::StatusOr<CheckpointPlace> FindCheckpoint(FileSystem& files, const std::string& name) {
  auto places = FindCheckpoints(files, name);
  if (!places.ok()) return places.status();
  return std::move(places->front());
}

}  // namespace sluice
