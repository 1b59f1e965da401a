// A shard that is called as the gRPC service calls it, without gRPC: a message is decoded, and what
// it says is given to the shard. After each call it checks what must hold whatever peers send.
//
// It dies (CHECK) if a rule is broken:
// - every call is answered at most once, and every error is a documented one, in a sentence;
// - the push counters add up;
// - published parameters are finite;
// - a push of a process counts once, and a process that resumes is told of it, unless it had left;
// - a server that is started again makes the same steps, to the bit;
// - in the end every call has ended, and nobody holds a gradient or an old snapshot.

#ifndef SLUICE_TESTS_FUZZ_ORACLES_CALL_SERVER_H_
#define SLUICE_TESTS_FUZZ_ORACLES_CALL_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/protocol/protocol_types.h"
#include "server/aggregation/gathered_push.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/shard/recording_journal.h"

namespace sluice {

// Used by one thread. `bytes` are those of the call's message.
class CallServer {
 public:
  // With `journal`, answers wait for Sync().
  CallServer(const ShardOptions& options, bool journal);
  ~CallServer();

  // ParameterServer. Pushes and pulls are named by their numbers, from 0.
  void Join(const std::string& bytes);
  void Initialize(const std::string& header, const std::string& chunk);
  void BeginPush(const std::string& bytes);
  void Send(size_t push, const std::string& bytes);
  void EndPush(size_t push);
  void BreakPush(size_t push);  // cancels it, if it waits
  void Pull(const std::string& bytes);
  void BreakPull(size_t pull);
  void ReleasePull(size_t pull);  // its reader has read everything
  void Heartbeat(uint64_t session);
  void BreakJoin(uint64_t session);
  void Leave(const std::string& bytes);

  // The operator.
  void SetConsistency(const std::string& bytes);
  void SetLearningRate(double rate);
  void Evict(const std::string& worker);
  void Drain();

  // The machine.
  void Pass(absl::Duration duration);
  void TakeCheckpoint();
  void Sync(size_t steps);     // so many more steps are in the journal
  void Restart(size_t steps);  // a crash, before which so many more steps came to the disk

  // For those who make messages. Sessions are those that were opened, also by earlier servers.
  ShardStatus status() const { return shard_->Describe(); }
  std::shared_ptr<const Layout> layout() const { return shard_->layout(); }  // or null
  size_t pushes() const { return pushes_.size(); }
  size_t pulls() const { return pulls_.size(); }
  const std::vector<uint64_t>& sessions() const { return sessions_; }

 private:
  struct Push {
    PushHeader header;
    PushId id;
    std::shared_ptr<GatheredPush> gathered;
    ArrivedBytes arrived;
    int answers = 0;
    bool open = true;  // its stream
  };
  struct Pulled {
    PullId id;
    int answers = 0;
    bool cancelled = false;
    std::shared_ptr<const Snapshot> snapshot;
  };
  using ProcessName = std::pair<std::string, uint64_t>;  // worker, nonce
  using PushName = std::pair<uint64_t, uint64_t>;        // process, sequence

  void Start();
  void Check();
  void CheckSnapshot();
  void End();
  void Hear(size_t push, const absl::StatusOr<PushOutcome>& outcome);
  void HearStart(size_t push, absl::StatusOr<PushStart> start);
  void NoteCounted(const PushHeader& header, const PushOutcome& outcome);
  void Welcomed(const JoinRequest& request, const Welcome& welcome);
  std::unique_ptr<ShardCheckpoint> Saved() const;
  void ForgetProcess(uint64_t session);
  void ForgetAfter(Step step);

  ShardOptions options_;
  const bool journals_;
  const TransformRegistry transforms_ = BuiltinTransforms();
  FakeClock clock_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<RecordingJournal> journal_;
  size_t durable_ = 0;                                 // records of the journal
  std::shared_ptr<const ShardCheckpoint> checkpoint_;  // the latest
  std::vector<std::unique_ptr<Push>> pushes_;          // of this server
  std::vector<std::unique_ptr<Pulled>> pulls_;
  uint64_t begun_ = 0;  // pushes
  std::vector<uint64_t> sessions_;
  std::map<ProcessName, uint64_t> processes_;  // the first session of each; 0: it has left
  std::map<uint64_t, uint64_t> process_of_;    // by session
  std::map<PushName, Step> counted_;  // pushes that were told so, and the step they are part of
  std::map<Step, std::vector<float>> published_;
  std::vector<std::weak_ptr<const Snapshot>> snapshots_;
  std::vector<std::weak_ptr<const std::atomic<uint64_t>>> gradients_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FUZZ_ORACLES_CALL_SERVER_H_
