// Turns what a shard reports, once a second, into rows and events of the history.

#ifndef SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_
#define SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "server/events/change_watch.h"
#include "server/events/job_moment.h"
#include "server/state/session_record.h"
#include "server/state/shard_status.h"
#include "server/web/history/history.h"
#include "server/web/history/span_window.h"

namespace sluice {

// What the page shows of a worker.
struct SeenWorker {
  std::string name;
  Activity activity = Activity::kNone;
  bool awaited = false;  // others wait for it
  uint64_t lag = 0;      // the server's step − the step of its latest gradient
  uint64_t accepted = 0;
  uint64_t stale = 0;
  float loss = 0;
  double seconds_since_push = -1;  // negative: it has not pushed
  absl::Time joined;
};

// A plain value, externally synchronized.
class JobWatch {
 public:
  // Adds a row, and events for what has changed since the last time, to `history`. `memory`: the
  // resident bytes of the process. `spans`: of the steps since the last time.
  void Look(const JobMoment& moment, uint64_t memory, const SpanSummary& spans, History& history);

  // Of the latest look: those that are alive, in the order of their ranks.
  const std::vector<SeenWorker>& workers() const { return workers_; }

 private:
  void AddEvent(const char* kind, std::string text);
  void AddEvents(const JobMoment& moment, const std::vector<JobChange>& changes);
  void AddPresence(const std::vector<JobChange>& changes);
  void LookAtWorkers(const JobMoment& moment, const JobNews& news);
  void AddWorker(const ShardStatus& state, const SessionRecord& record, const SessionNews& news,
                 const AwaitedWorker* awaited, bool pulls);
  void AddToLane(const SeenWorker& row, bool has_loss);
  void FillColumns(const JobMoment& moment, const JobNews& news, uint64_t memory,
                   const SpanSummary& spans);

  History* history_ = nullptr;  // during Look()
  HistorySample sample_;
  double time_ = 0;
  Step step_;
  std::vector<SeenWorker> workers_;
  absl::flat_hash_set<std::string> alive_;  // names
  ChangeWatch changes_;
  double checkpoint_time_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_
