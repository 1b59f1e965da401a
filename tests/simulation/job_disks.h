// What the servers of a job have on their disks. World plays with it what server/durable does on
// server 0: it writes the state file of a checkpoint last, counts the steps that are lost, and
// knows from which step on the journals of all servers have all.

#ifndef SLUICE_TESTS_SIMULATION_JOB_DISKS_H_
#define SLUICE_TESTS_SIMULATION_JOB_DISKS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/state/shard_checkpoint.h"
#include "tests/simulation/model_checkpoint.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/stripe_disk.h"

namespace sluice {

// What a file keeps of a shard's state. Plain SGD has no slots.
ShardCheckpoint SavedState(const ShardCheckpoint& checkpoint);

class JobDisks {
 public:
  // A checkpoint that exists, and what the oracle expects of a job that continues from it.
  struct Checkpoint {
    ShardCheckpoint state;
    ModelCheckpoint expected;

    CheckpointKey key() const { return {state.incarnations.current(), state.step}; }
  };

  explicit JobDisks(const Scenario& scenario);

  StripeDisk& of(uint32_t server) { return stripes_.at(server); }

  // ---- Incarnations

  // A new incarnation begins at that step. It serves workers from now on.
  void Begin(Incarnation incarnation, Step begin);
  void NoteStep(Step made) { reached_ = made; }
  // What the next incarnation has lost if it begins at that step.
  uint64_t LostSteps(Step begin) const;
  // Where those began that a checkpoint does not list.
  std::map<Incarnation, Step> BegunSince(const Checkpoint& checkpoint) const;

  // ---- Checkpoints

  // The newest; null if there is none.
  const Checkpoint* newest() const { return whole_.empty() ? nullptr : &whole_.back(); }
  // All of them, newest first.
  std::vector<CheckpointKey> whole() const;
  // Its state, with the stripe of server 0.
  absl::StatusOr<ShardCheckpoint> Load(const Checkpoint& checkpoint);

  // The incarnation takes a checkpoint.
  void Take(std::shared_ptr<const ShardCheckpoint> state, const ModelCheckpoint& expected);
  bool any_taken() const { return !taken_.empty(); }
  // Server 0 saves its own stripe of the checkpoint that was taken first.
  void SaveOwn();
  // It writes the state file, if all other servers have reported. Returns whether it has.
  bool WriteState();
  // The process of server 0 ends: in order, so it writes the state files that it can write.
  void Finish();
  // It is killed.
  void Forget();

  // ---- Journals

  // Server 0 has heard of a server's journal, or of its own.
  void HearOfJournal(uint32_t server, const JournalReport& report) { heard_[server] = report; }
  // Up to which step all servers have told it that they have all; 0 before there is a checkpoint.
  Step HeardDurable() const;
  // Why the first server that cannot write its journal cannot, as far as server 0 knows.
  absl::Status HeardStopped() const;

  // Whatever it knows: the last step that is on all disks, or with which the incarnation began.
  Step Durable() const;
  // Whether steps wait for a disk, and whether they wait for one that is full.
  bool AnyWaiting() const;
  bool AnyStopped() const;

  // No message is under way. The server must know what is on the disks.
  void CheckReports();
  // Each checkpoint has all its files.
  void CheckWhole();
  // The broken rule, or "".
  const std::string& violation() const { return violation_; }

 private:
  struct Taken {
    std::shared_ptr<const ShardCheckpoint> state;
    ModelCheckpoint expected;
    uint64_t number = 0;  // of the incarnation, from 1
    absl::optional<uint64_t> own;

    CheckpointKey key() const { return {state->incarnations.current(), state->step}; }
  };

  void Fail(const std::string& what);
  void CheckStripe(const Taken& taken, uint32_t server, uint64_t checksum);

  const uint32_t keep_;
  std::deque<StripeDisk> stripes_;
  std::deque<Checkpoint> whole_;  // the oldest first
  std::deque<Taken> taken_;       // that are not written; likewise
  uint64_t takes_ = 0;            // of the incarnation
  std::map<Incarnation, Step> begun_;
  Step reached_;
  std::vector<JournalReport> heard_;  // by server; of the incarnation
  std::string violation_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SIMULATION_JOB_DISKS_H_
