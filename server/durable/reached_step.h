// The latest step that a server has made, kept or not: what tells its next life how many steps were
// lost.

#ifndef SLUICE_SERVER_DURABLE_REACHED_STEP_H_
#define SLUICE_SERVER_DURABLE_REACHED_STEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/ids.h"
#include "common/storage/file_system.h"

namespace sluice {

// A file to which 8 bytes are appended for each step, and which is never synced: they outlive the
// process but not the machine, after whose end they may tell of an earlier step. One thread at a
// time.
class ReachedStep {
 public:
  // `files` outlives it.
  ReachedStep(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  // That an earlier life noted last; 0 if none did.
  Step Read() const;

  // Forgets what earlier lives noted.
  void Begin(Step step);
  // After Begin(). Where the disk is full an earlier step may stay noted, or none.
  void Note(Step step);

 private:
  FileSystem& files_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  uint64_t noted_ = 0;  // in the file
};

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_REACHED_STEP_H_
