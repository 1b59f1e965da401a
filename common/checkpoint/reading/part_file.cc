#include "common/checkpoint/reading/part_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace sluice {

absl::StatusOr<PartFile> OpenPart(FileSystem& files, const std::vector<std::string>& directories,
                                  const std::string& name, absl::string_view what) {
  for (const std::string& directory : directories) {
    std::string path = absl::StrCat(directory, "/", name);
    auto file = files.Open(path);
    if (absl::IsNotFound(file.status())) continue;
    if (!file.ok()) return file.status();
    return PartFile{std::move(path), *std::move(file)};
  }
  const auto others = absl::MakeConstSpan(directories).subspan(1);
  const std::string also =
      others.empty() ? "" : absl::StrCat(", also in ", absl::StrJoin(others, " and "));
  return absl::DataLossError(absl::StrCat(directories.front(), "/", name, " is missing", also, ": ",
                                          what,
                                          "; copy it there from that server's --checkpoint-dir"));
}

absl::Status InFile(const std::string& path, const absl::Status& error) {
  return absl::Status(error.code(), absl::StrCat(path, ": ", error.message()));
}

}  // namespace sluice
