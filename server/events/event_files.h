// What a server writes of what happens to its job: for people, its log; and, if it is asked to, for
// scripts the JSON log, and for TensorBoard an event file. Once a second it looks at the job. All
// work on files is done by other threads.

#ifndef SLUICE_SERVER_EVENTS_EVENT_FILES_H_
#define SLUICE_SERVER_EVENTS_EVENT_FILES_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/events/change_watch.h"
#include "server/events/json_log.h"
#include "server/events/story_log.h"
#include "server/events/tensorboard_log.h"
#include "server/observe/job_moment.h"

namespace sluice {

struct EventFileOptions {
  std::string json_log;     // file; empty: none
  std::string tensorboard;  // directory; empty: none
};

// Used by one thread.
class EventFiles {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);

  // `now` by RealClock(). INVALID_ARGUMENT names what cannot be written.
  static absl::StatusOr<std::unique_ptr<EventFiles>> Open(const EventFileOptions& options,
                                                          absl::Time now);

  // Call it often, with RealClock()'s time. Once in kPeriod it asks `get`.
  void Look(absl::Time now, absl::FunctionRef<JobMoment()> get);

  // Writes the last state. Returns when all is written, or lost.
  void End(absl::FunctionRef<JobMoment()> get);

 private:
  EventFiles(std::unique_ptr<JsonLog> json, std::unique_ptr<TensorBoardLog> tensorboard)
      : json_(std::move(json)), tensorboard_(std::move(tensorboard)) {}

  void Take(const JobMoment& moment);

  const std::unique_ptr<JsonLog> json_;                // or null
  const std::unique_ptr<TensorBoardLog> tensorboard_;  // or null
  ChangeWatch changes_;
  StoryLog story_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_EVENT_FILES_H_
