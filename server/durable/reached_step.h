// A file that holds the latest step that a server has made, durable or not. The next incarnation
// reads from it how many steps are lost. Used by DurableDirectory.

#ifndef SLUICE_SERVER_DURABLE_REACHED_STEP_H_
#define SLUICE_SERVER_DURABLE_REACHED_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/storage/file_system.h"

namespace sluice {

// Appends 8 bytes for each step and never syncs them. They survive a crash of the process; after a
// crash of the machine the file may hold an earlier step. One thread at a time.
class ReachedStep {
 public:
  // `files` outlives this.
  ReachedStep(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  // The last step that an earlier incarnation noted; 0 if there is none.
  Step Read() const;

  // Empties the file and notes `step`. An error is logged, and then no step is noted.
  void Begin(Step step);
  // Notes a step, after Begin(). If the disk is full, the log says so and an older step may remain.
  void Note(Step step);

 private:
  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  uint64_t noted_ = 0;  // number of steps in the file
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_REACHED_STEP_H_
