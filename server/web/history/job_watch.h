// Turns what a shard reports, once a second, into rows and events of the history.

#ifndef SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_
#define SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "server/events/change_watch.h"
#include "server/observe/job_moment.h"
#include "server/web/history/history.h"
#include "server/web/history/span_window.h"

namespace sluice {

// What the page shows of a worker.
struct SeenWorker {
  const v1::Worker* worker = nullptr;  // of the moment
  Activity activity = Activity::kNone;
  bool awaited = false;  // others wait for it
  absl::Time joined;
};

// A plain value, externally synchronized.
class JobWatch {
 public:
  // Adds a row, and events for what has changed since the last time, to `history`. `memory`: the
  // resident bytes of the process. `spans`: of the steps since the last time.
  void Look(const JobMoment& moment, uint64_t memory, const SpanSummary& spans, History& history);

  // Of the latest look, whose moment still exists: those that are alive, in the order of their
  // names.
  const std::vector<SeenWorker>& workers() const { return workers_; }

 private:
  void AddEvent(const char* kind, std::string text);
  void AddEvents(const JobMoment& moment, const std::vector<JobChange>& changes);
  void AddPresence(const std::vector<JobChange>& changes);
  void LookAtWorkers(const JobMoment& moment, const JobNews& news);
  void FillColumns(const JobMoment& moment, const JobNews& news, uint64_t memory,
                   const SpanSummary& spans);

  History* history_ = nullptr;  // during Look()
  HistorySample sample_;
  double time_ = 0;
  uint64_t step_ = 0;
  std::vector<SeenWorker> workers_;
  absl::flat_hash_set<std::string> alive_;  // names
  ChangeWatch changes_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_
