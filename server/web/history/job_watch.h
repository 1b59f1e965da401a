// Turns what a shard reports, once a second, into rows and events of the history.

#ifndef SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_
#define SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/state/session_record.h"
#include "server/state/shard_status.h"
#include "server/web/history/history.h"

namespace sluice {

// What the shard does not know.
struct Surroundings {
  absl::Time time;      // of day, by RealClock(): the shard's own clock stands still in pauses
  uint64_t memory = 0;  // resident bytes of the process
  // The last checkpoint of this process; absent: there is none.
  absl::optional<Step> checkpoint;
};

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
  // Adds a row, and events for what has changed since the last time, to `history`. `sessions` are
  // the shard's, in any order.
  void Look(const ShardStatus& state, const std::vector<SessionRecord>& sessions,
            const Surroundings& surroundings, History& history);

  // Of the latest look: those that are alive, in the order of their ranks.
  const std::vector<SeenWorker>& workers() const { return workers_; }

 private:
  struct Known {
    Presence presence = Presence::kPresent;
    uint64_t pushes = 0;
    absl::Time joined;
  };

  void AddEvent(const char* kind, std::string text);
  void LookAtServer(const ShardStatus& state, const Surroundings& surroundings);
  void LookAtWarnings(const ShardStatus& state);
  void LookAtWorkers(const ShardStatus& state, const std::vector<SessionRecord>& sessions);
  void LookAtPresence(const SessionRecord& record, const Known* before);
  void AddChanges();
  void Forget(const std::vector<SessionRecord>& all_but);
  void AddWorker(const ShardStatus& state, const SessionRecord& record,
                 const AwaitedWorker* awaited);
  void AddToLoss(float loss);
  void AddToLane(const SeenWorker& row, bool has_loss);
  void FillColumns(const ShardStatus& state, const Surroundings& surroundings);

  History* history_ = nullptr;  // during Look()
  HistorySample sample_;
  double time_ = 0;
  Step step_;
  std::vector<SeenWorker> workers_;
  std::map<std::string, Known> known_;                       // workers of the latest look
  absl::flat_hash_set<std::string> alive_;                   // names
  std::map<std::string, std::vector<std::string>> changes_;  // names by kind of event
  uint32_t losses_ = 0;                                      // reported since the last look
  absl::optional<ShardStatus> last_;
  absl::optional<Step> checkpoint_;
  double checkpoint_time_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_WEB_HISTORY_JOB_WATCH_H_
