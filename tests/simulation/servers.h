// The servers of a job that one thread plays: the shard, and the replicas that it leads behind
// links that are late, deliver twice, and break. Nothing happens on the links before Settle(). All
// live until one is killed; then they are of no more use, because the job goes back to a
// checkpoint.

#ifndef SLUICE_TESTS_SIMULATION_SERVERS_H_
#define SLUICE_TESTS_SIMULATION_SERVERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/parallel.h"
#include "common/tensor/stripes.h"
#include "server/replica/replica.h"
#include "server/shard/shard.h"
#include "tests/simulation/job_disks.h"
#include "tests/simulation/later_executor.h"
#include "tests/simulation/scenario.h"
#include "tests/testing/replica/late_link.h"
#include "tests/testing/vectors.h"

namespace sluice {

// Server 0 is the shard's.
class Servers {
 public:
  // Appends a line for each message that a link delivers to `log`, unless it is null. `clock`,
  // `disks` and `log` outlive it.
  Servers(const Scenario& scenario, const Clock& clock, JobListener owner, JobDisks& disks,
          std::vector<std::string>* log);

  Shard& shard() { return *shard_; }
  Replica& replica(uint32_t server) { return *replicas_.at(server - 1); }
  uint32_t count() const { return stripes_.count(); }

  // A call of a worker to one server is under way.
  void Later(std::function<void()> call) { calls_.push_back(std::move(call)); }
  // The calls and the messages on the links come, in any order, until nothing is under way. With
  // one server, the calls come in their order.
  void Settle();
  // The broken rule, or "".
  const std::string& violation() const { return violation_; }

  // ---- Journals

  // All servers begin their journals. Before the first step of the incarnation.
  void StartJournals();
  // Some of the steps that wait at that server come to its disk, unless it is dead.
  void SyncSome(uint32_t server);
  // All that can be written comes to the disks, and all servers hear of it.
  void SyncAll();
  // Those that cannot write say so.
  void TellStopped();
  // Server 0 tells the shard what its journal and the others have told.
  void TellJournals();

  // ---- The death of a server

  // The server is killed when so many more calls and messages have come. Then `killed` is called.
  // If it is server 0, nothing happens any more. If it is another one, server 0 notices some time
  // later, and waits for it no longer.
  void Kill(uint32_t server, uint64_t acts, std::function<void()> killed);
  // It is not, unless it is dead.
  void Spare();
  // The server that was killed.
  absl::optional<uint32_t> dead() const;
  // The others end in order, after a few more messages: they write the files that they have begun,
  // and their journals. What the dead one had not synced is lost, perhaps in part.
  void EndOthers();
  // Server 0 ends in order. It writes its journal first, and answers no push of a step that is not
  // on all disks.
  void EndFirst(const absl::Status& why);

  // Whether all others have told the shard that they have loaded a checkpoint.
  bool AllLoaded() const { return loaded_.size() + 1 == count(); }
  // A few calls and messages come.
  void ActSome();
  // The others write all files that they have begun, and what follows happens.
  void WriteAll();

  // What chance does to calls and messages. With one server it decides nothing.
  bool Percent(uint32_t chance) { return dice_() % 100 < chance; }
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(dice_() % end); }

  // The elements of these, which begin at `offset` of the vector, that are in the server's stripe.
  Values PartOf(const Values& elements, uint64_t offset, uint32_t server) const;
  // `elements` of the whole vector, with 0 for those that are not in the shard's stripe.
  Values StripeOfShard(Values elements) const;
  // How many elements of the server's stripe lie before `offset` of the vector.
  uint64_t Before(uint32_t server, uint64_t offset) const {
    return stripes_.Before(server, offset);
  }

  // The latest snapshots, by server. All are null before there are parameters.
  std::vector<std::shared_ptr<const Snapshot>> Latest() const;
  Values Joined(const std::vector<std::shared_ptr<const Snapshot>>& parts) const;

 private:
  enum class Death { kNone, kPlanned, kUnnoticed, kNoticed, kOver };

  void AddReplica(uint32_t server, StripeDisk& disk, const TableMemory& memory);
  void Pump(absl::FunctionRef<bool()> until);
  void Act();
  bool AdvanceDeath();
  void Die();
  bool idle() const;
  bool settled() const;
  void TakeReport(uint32_t server, const ReplicaReport& report);
  void TakeJournalReport(uint32_t server, const JournalReport& report);
  void EndJournal(uint32_t server);
  void CheckCarried(Step next);
  void Note(const std::string& line);

  const Stripes stripes_;
  const Incarnation incarnation_;
  JobDisks& disks_;
  std::vector<std::string>* const log_;
  std::mt19937 dice_;
  std::vector<std::function<void()>> calls_;
  std::vector<bool> carried_;  // the order of the step that is being made, by server
  std::string violation_;
  absl::Status journal_stopped_;  // that the shard was told of
  std::unique_ptr<StepJournal> own_journal_;
  std::unique_ptr<Shard> shard_;
  std::vector<LaterExecutor*> files_;  // of the replicas, which own them
  std::set<uint32_t> loaded_;
  uint64_t steps_ = 0;
  Death death_ = Death::kNone;
  uint32_t doomed_ = 0;
  uint64_t acts_left_ = 0;  // until death_ changes
  std::function<void()> killed_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<LateLink>> links_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_SERVERS_H_
