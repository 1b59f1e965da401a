// Opens the files of a checkpoint, which may lie in the directories of several servers.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_PART_FILE_H_
#define SLUICE_COMMON_CHECKPOINT_READING_PART_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/file_system.h"

namespace sluice {

struct PartFile {
  std::string path;  // where it was found
  std::unique_ptr<ReadableFile> file;
};

// Opens the file of that name in the first of the directories that has it. If none has it,
// DATA_LOSS names the path in the first one, and says what the file is, for example "it is the part
// of server 1 of 3": a missing file is damage to the checkpoint. Other errors are FileSystem's, and
// may be temporary.
absl::StatusOr<PartFile> OpenPart(FileSystem& files, const std::vector<std::string>& directories,
                                  const std::string& name, absl::string_view what);

// An error that was found in that file, whose message then begins with the path.
absl::Status InFile(const std::string& path, const absl::Status& error);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_PART_FILE_H_
