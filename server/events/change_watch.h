// Compares a job with itself a moment ago: what has happened meanwhile, and how fast it goes. The
// live page and the logs of events show it, each in its own words.
//
// Between two looks a worker may come and go; both are told. Of a setting that changed twice, the
// last value is told.

#ifndef SLUICE_SERVER_EVENTS_CHANGE_WATCH_H_
#define SLUICE_SERVER_EVENTS_CHANGE_WATCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/observe/job_moment.h"

namespace sluice {

struct JobChange {
  enum class Kind {
    kStarted,      // the first look at an incarnation of the server
    kPolicy,       // the consistency rules have changed
    kRate,         // the learning rate has changed, other than by its schedule
    kCheckpoint,   // one was saved
    kWarning,      // begins
    kWarningOver,  // has ended
    kMeasured,     // somebody has reported a measurement; of several, the last one is told
    kStep,         // steps were made
    kDraining,     // the job goes down in good order
    kFinished,     // the last worker has left
    kJoined,       // this one and the next three: `worker`
    kLost,
    kLeft,
    kEvicted,
  };
  Kind kind = Kind::kStarted;
  const v1::Worker* worker = nullptr;            // of the moment, or null
  const v1::TrainingWarning* warning = nullptr;  // of the moment, or null
};

// Since the look before; time in which the process did not run does not count.
struct JobRates {
  double steps = 0;  // all: per second
  double pushes = 0;
  double bytes_received = 0;  // of tensors, as float32
  double bytes_sent = 0;
};

// The facts that one look finds out about a worker.
struct WorkerNews {
  absl::Time since;       // when its presence was first seen to be what it is
  bool has_loss = false;  // it has pushed since the look before, and its loss is a number
};

struct JobNews {
  std::vector<JobChange> changes;
  std::vector<WorkerNews> workers;  // of each worker of the moment, in its order
  absl::optional<double> loss;      // the mean of the workers that have pushed
  // Absent before the first step, and at the first look at an incarnation.
  absl::optional<JobRates> rates;
  absl::optional<double> staleness;  // mean of the gradients that counted; absent: none did
};

// A plain value, externally synchronized.
class ChangeWatch {
 public:
  // The news since the look before. They point into `moment`.
  JobNews Look(const JobMoment& moment);

 private:
  struct Known {
    v1::WorkerPresence presence = v1::PRESENT;
    uint64_t pushes = 0;
    absl::Time since;
  };

  void LookAtServer(const v1::ServerState& state, JobNews* news) const;
  void LookAtMeasurements(const v1::ServerState& state, JobNews* news) const;
  void LookAtWarnings(const v1::ServerState& state, JobNews* news) const;
  void LookAtWorkers(const JobMoment& moment, JobNews* news);
  void LookAtPresence(const v1::Worker& worker, const Known* before, JobNews* news) const;
  WorkerNews LookAtWorker(const v1::Worker& worker, absl::Time now, JobNews* news);
  void Forget(const std::vector<v1::Worker>& all_but);
  void LookAtSpeed(const v1::ServerState& state, JobNews* news) const;
  void LookAtEnd(const v1::ServerState& state, JobNews* news) const;
  bool Starts(const v1::ServerState& state) const;

  std::map<std::string, Known> known_;  // workers of the latest look
  absl::optional<v1::ServerState> last_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_EVENTS_CHANGE_WATCH_H_
