// The log of a job's events: one JSON object a line. README.md has the table of events and fields.

#ifndef SLUICE_SERVER_EVENTS_JSON_LOG_H_
#define SLUICE_SERVER_EVENTS_JSON_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/events/change_watch.h"
#include "server/events/record_file.h"
#include "server/observe/job_moment.h"

namespace sluice {

// Called by one thread.
class JsonLog {
 public:
  explicit JsonLog(std::unique_ptr<RecordFile> file) : file_(std::move(file)) {}

  // Adds a line for each change.
  void Look(const JobMoment& moment, const JobNews& news);

  // Writes what is queued. If lines are lost for good, the glog log says how many.
  void End(const JobMoment& last);

 private:
  void TellLost(const JobMoment& moment);

  const std::unique_ptr<RecordFile> file_;
};

// The line of each change, with its newline.
std::vector<std::string> ChangeLines(const JobMoment& moment, const JobNews& news);

// The line that says how many lines before it were lost.
std::string LostLine(const JobMoment& moment, uint64_t lines);

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_JSON_LOG_H_
