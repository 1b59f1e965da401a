#ifndef SLUICE_TOOLS_EVALUATE_DIRECTORY_SOURCE_H_
#define SLUICE_TOOLS_EVALUATE_DIRECTORY_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "tools/evaluate/parameter_source.h"

namespace sluice {

struct DirectoryOptions {
  std::string directory;  // a server's --checkpoint-dir
  uint64_t every = 1;     // steps between two that are given; the last is in any case
  bool once = false;      // give what is there, and wait for nothing
  // How long nobody may hold the directory before its run is over.
  absl::Duration patience = absl::Seconds(60);
  // Between two looks. The directory is read each time, not watched (inotify(7)): a file system
  // that comes over the network tells nobody here what other machines do.
  absl::Duration interval = absl::Seconds(1);
};

// Checkpoints, the oldest first, as they appear, until the run has ended: no server holds the
// directory, and its newest checkpoint says so. Damaged ones are named in the log and passed over.
std::unique_ptr<ParameterSource> MakeDirectorySource(const DirectoryOptions& options);

}  // namespace sluice

#endif  // SLUICE_TOOLS_EVALUATE_DIRECTORY_SOURCE_H_
