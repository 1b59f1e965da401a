// The scalars of a job, as an event file that TensorBoard reads: records of a length, the event as
// protobuf, and masked checksums of both. README.md has the table of tags.

#ifndef SLUICE_SERVER_EVENTS_TENSORBOARD_LOG_H_
#define SLUICE_SERVER_EVENTS_TENSORBOARD_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/protocol/results.h"
#include "server/events/change_watch.h"
#include "server/events/record_file.h"
#include "server/observe/job_moment.h"

namespace sluice {

// The path of the file of a server that starts at `time` on `host`:
// <directory>/events.out.tfevents. <seconds since 1970>.<host>.
std::string EventFilePath(const std::string& directory, absl::Time time, absl::string_view host);

// Creates the directory if it is missing. INVALID_ARGUMENT, with the reason, if that is impossible.
absl::Status MakeEventDirectory(const std::string& directory);

// The scalars of a moment, by tag. What is not known is left out.
std::map<std::string, float> ScalarsOf(const JobMoment& moment, const JobNews& news);

// Called by one thread.
class TensorBoardLog {
 public:
  // Writes the event that an event file begins with.
  TensorBoardLog(std::unique_ptr<RecordFile> file, absl::Time time);

  // Adds an event if a step was made since the look before, or a worker has reported a result; and
  // one at its own step if a measurement was reported.
  void Look(const JobMoment& moment, const JobNews& news);

  // Writes what is queued. If events are lost, the log says how many.
  void End();

 private:
  void Write(absl::Time time, uint64_t step, const std::map<std::string, float>& scalars);

  const std::unique_ptr<RecordFile> file_;
  Results results_;  // that were written
};

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_TENSORBOARD_LOG_H_
