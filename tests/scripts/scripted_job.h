// The job that a script plays: its servers, and its workers by their names. A job has one
// implementation in this process, with any number of servers, and one over gRPC.

#ifndef SLUICE_TESTS_SCRIPTS_SCRIPTED_JOB_H_
#define SLUICE_TESTS_SCRIPTS_SCRIPTED_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/protocol/protocol_types.h"
#include "common/tensor/layout.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/vectors.h"

namespace sluice {

// A push whose stream is open on all servers. Its destructor breaks the stream.
class ScriptedPush {
 public:
  virtual ~ScriptedPush() = default;
  virtual bool admitted() const = 0;  // on the first server: its gradient may be sent
  // The answer, once.
  virtual absl::optional<absl::StatusOr<PushOutcome>> Answer() = 0;
  virtual void Finish(const Values& gradient) = 0;  // sends it
  virtual void Break() = 0;
};

// The parameters that a pull has brought.
struct StepParameters {
  PullHeader header;
  Values values;
};

// A pull that was sent to all servers.
class ScriptedPull {
 public:
  virtual ~ScriptedPull() = default;
  // The answer, once.
  virtual absl::optional<absl::StatusOr<StepParameters>> Answer() = 0;
  virtual void Cancel() = 0;  // returns when the servers have forgotten it
};

// Used by one thread. The destructor expects that the push counters add up and that no push is left
// in the shard.
class ScriptedJob {
 public:
  virtual ~ScriptedJob() = default;

  virtual absl::StatusOr<Welcome> Join(const JoinRequest& request) = 0;
  virtual absl::Status Leave(SessionId session, const Farewell& farewell) = 0;
  virtual void Lose(SessionId session) = 0;  // its connection breaks
  virtual absl::StatusOr<InitializeOutcome> Offer(SessionId session, const Values& parameters) = 0;
  // Sends the header.
  virtual std::unique_ptr<ScriptedPush> Push(const PushHeader& header) = 0;
  // `waits`: returns once the server has made it wait, else once it is answered.
  virtual std::unique_ptr<ScriptedPull> Pull(const PullRequest& request, bool waits) = 0;
  virtual absl::Status SetConsistency(const Consistency& consistency) = 0;
  // The messages between the servers wait from now on, or no longer.
  virtual void HoldLinks(bool hold) = 0;
  // Waits until `condition` holds, if it may hold later; false if that takes too long.
  virtual bool Await(const std::function<bool()>& condition) = 0;
  virtual Values Parameters() = 0;  // of the latest step; empty: there are none
  virtual Shard& shard() = 0;       // of the first server
  virtual FakeClock& clock() = 0;
  // Lets the servers do what follows from a call of the shard.
  virtual void Settle() = 0;
};

// `listener` gets the events of a session by its name, in words, and those of the job's owner.
using ScriptListener = std::function<void(const std::string& name, const JobEvent& event)>;

std::unique_ptr<ScriptedJob> JobInProcess(const ShardOptions& options, const Layout& layout,
                                          uint32_t servers, ScriptListener listener);
// A server with its real gRPC service. `shared`: tensors are in shared memory.
std::unique_ptr<ScriptedJob> JobOverGrpc(const ShardOptions& options, const Layout& layout,
                                         bool shared);

}  // namespace sluice

#endif  // SLUICE_TESTS_SCRIPTS_SCRIPTED_JOB_H_
