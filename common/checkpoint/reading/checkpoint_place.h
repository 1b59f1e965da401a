// Where the files of a checkpoint are, and how a user names that. A name is one of:
// 1. the file that names the checkpoint: the stripes of several servers are beside it;
// 2. a server's --checkpoint-dir, of several servers that of the first one;
// 3. one of these, and after it with commas the directories of other servers, if each had its own.
// A name that exists may have a comma.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_PLACE_H_
#define SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_PLACE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/storage/file_system.h"

namespace sluice {

struct CheckpointPlace {
  std::vector<std::string> directories;  // each file is in one of them; at least one
  // The file that names the checkpoint; empty: it has the name of one, in a directory.
  std::string file = {};
};

// The place of a checkpoint that a file names. `others` are directories of other servers.
CheckpointPlace PlaceOf(std::string file, const std::vector<std::string>& others);

// The words of a name; one word, if that is the name of something. Empty for an empty name.
std::vector<std::string> WordsOfName(FileSystem& files, const std::string& name);

// OK if all of them are directories: else a checkpoint's file seems to be missing. Otherwise the
// error of FileSystem::List().
absl::Status CheckDirectories(FileSystem& files, const std::vector<std::string>& directories);

// The checkpoint with that name: of a directory the newest. Errors:
//   NOT_FOUND         the directory has no checkpoint, or one of the other directories is not there
//   INVALID_ARGUMENT  the name is empty
// Others are FileSystem's. It opens no file, so a file need not be there, nor be a checkpoint.
absl::StatusOr<CheckpointPlace> FindCheckpoint(FileSystem& files, const std::string& name);

// The same, but of a directory all checkpoints, the newest first.
absl::StatusOr<std::vector<CheckpointPlace>> FindCheckpoints(FileSystem& files,
                                                             const std::string& name);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_PLACE_H_
