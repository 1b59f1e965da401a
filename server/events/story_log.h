// What a server says of its job in its own log, for people: who comes, goes and is missed, what was
// changed, how far training is, and how it ends. What harms the job is told where it is seen
// (ShardWatch, StepWaitLog).
//
// Of many workers at once, one line tells how many they are.

#ifndef SLUICE_SERVER_EVENTS_STORY_LOG_H_
#define SLUICE_SERVER_EVENTS_STORY_LOG_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/events/change_watch.h"
#include "server/observe/job_moment.h"

namespace sluice {

// A plain value, externally synchronized.
class StoryLog {
 public:
  // The lines of a look, without newlines. A job that makes steps gets one after 10 s, 20 s, 40 s,
  // and then each minute; one that waits for workers to join, after 20 s, 40 s, and so on.
  std::vector<std::string> Look(const JobMoment& moment, const JobNews& news);

 private:
  using Lines = std::vector<std::string>;

  void TellWorkers(const JobMoment& moment, const JobNews& news, Lines* lines);
  void TellStalled(const JobMoment& moment, Lines* lines);
  void TellSettings(const JobMoment& moment, const JobNews& news, Lines* lines) const;
  void TellProgress(const JobMoment& moment, const JobNews& news, Lines* lines);
  void TellWaiting(const JobMoment& moment, Lines* lines);
  void TellEnd(const JobMoment& moment, const JobNews& news, Lines* lines) const;
  std::string Joined(const v1::Worker& worker);

  std::set<std::string> gone_;     // names of workers that were lost or evicted, and may come back
  std::set<std::string> stalled_;  // names of workers that the latest look saw so
  bool trains_ = false;
  // Of the line about progress that was the latest one, or of the first look that saw training.
  absl::Time told_;
  uint64_t told_step_ = 0;
  absl::Duration pause_;  // until the next one
  double loss_sum_ = 0;   // since then, of each look with a loss
  uint32_t losses_ = 0;
  absl::optional<absl::Time> waits_since_;  // for workers to join
  absl::Duration next_wait_;                // the next line is due when the wait has this length
};

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_STORY_LOG_H_
