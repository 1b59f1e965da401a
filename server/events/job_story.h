// The story of a job for its log: looks once a second, and tells what is new.

#ifndef SLUICE_SERVER_EVENTS_JOB_STORY_H_
#define SLUICE_SERVER_EVENTS_JOB_STORY_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/events/change_watch.h"
#include "server/events/story_log.h"

namespace sluice {

// A plain value, externally synchronized.
class JobStory {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);

  // Whether it is time for Tell(). `now` by RealClock().
  bool IsDue(absl::Time now) const { return now >= next_; }

  // The lines since the call before; see StoryLog. The next call is due kPeriod after `moment`.
  std::vector<std::string> Tell(const JobMoment& moment) {
    next_ = moment.time + kPeriod;
    return story_.Look(moment, changes_.Look(moment));
  }

 private:
  ChangeWatch changes_;
  StoryLog story_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_JOB_STORY_H_
