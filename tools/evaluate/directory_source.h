// Evaluates the checkpoints that a server saves in a directory, while it runs or after.

#ifndef SLUICE_TOOLS_EVALUATE_DIRECTORY_SOURCE_H_
#define SLUICE_TOOLS_EVALUATE_DIRECTORY_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "tools/evaluate/parameter_source.h"

namespace sluice {

struct DirectoryOptions {
  // A server's --checkpoint-dir; of several servers that of the first one, and after it with commas
  // those of the others, if each has its own.
  std::string directory;
  uint64_t every = 1;  // least number of steps between two checkpoints; the last always counts
  bool once = false;   // return the checkpoints that are there, without waiting for more
  // The run counts as lost when no server has held the directory's lock for so long.
  absl::Duration patience = absl::Seconds(60);
  // Time between two reads of the directory. It is read again each time instead of watched by
  // inotify(7), which does not see what other machines write to a network file system.
  absl::Duration interval = absl::Seconds(1);
};

// Returns a source that waits for checkpoints and gives them oldest first. It ends when no server
// holds the directory and the newest checkpoint says that the run has finished. A damaged
// checkpoint is logged and skipped.
std::unique_ptr<ParameterSource> MakeDirectorySource(const DirectoryOptions& options);

}  // namespace sluice

#endif  // SLUICE_TOOLS_EVALUATE_DIRECTORY_SOURCE_H_
