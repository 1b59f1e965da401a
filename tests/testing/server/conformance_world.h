// The interface of a server, in the same process or over gRPC, that the conformance suite needs.
//
//   const auto world = MakeShardConformance(Bounded(2, 0), ParametersOnly(1));
//   world->Start({"w"});
//   EXPECT_THAT(world->Push("w", 0, {10}), Accepted(0));

#ifndef SLUICE_TESTS_TESTING_SERVER_CONFORMANCE_WORLD_H_
#define SLUICE_TESTS_TESTING_SERVER_CONFORMANCE_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/protocol_types.h"
#include "server/shard/shard.h"
#include "tests/testing/vectors.h"

namespace sluice {

// The parameters of one step.
struct Taken {
  uint64_t step = 0;
  Values values;
};

// A pull that waits.
class PendingTake {
 public:
  virtual ~PendingTake() = default;
  virtual absl::StatusOr<Taken> Wait() = 0;  // once
  virtual void Cancel() = 0;                 // returns when the server has forgotten it
};

// Used by one thread. The destructor expects that the push counters add up and that no push or pull
// is left in the shard.
class ConformanceWorld {
 public:
  virtual ~ConformanceWorld() = default;

  virtual absl::StatusOr<Welcome> Join(const std::string& name) = 0;
  virtual absl::Status Leave(const std::string& name) = 0;
  virtual void Lose(const std::string& name) = 0;  // its connection breaks
  virtual SessionId session(const std::string& name) = 0;
  virtual absl::StatusOr<InitializeOutcome> Initialize(const std::string& name,
                                                       const Values& parameters) = 0;
  // Each has the worker's next sequence.
  virtual PushHeader NextHeader(const std::string& name, uint64_t step) = 0;
  virtual absl::StatusOr<PushOutcome> PushAs(const PushHeader& header, const Values& gradient) = 0;
  // Starts a pull that must wait. Returns once the server has made it wait.
  virtual std::unique_ptr<PendingTake> StartPull(const PullRequest& request) = 0;
  // Makes a pull that need not wait, and returns its result.
  virtual absl::StatusOr<Taken> Pull(const PullRequest& request) = 0;
  virtual absl::StatusOr<uint64_t> SetPolicy(const Consistency& consistency) = 0;
  // How many gradients count towards the current step, as the server reports.
  virtual uint32_t accumulated() = 0;
  // Lets time pass, then ticks. Sessions that are present send heartbeats meanwhile.
  virtual void Pass(absl::Duration duration) = 0;
  // Waits until the server is at this step; false if that takes too long. Nothing may be missing
  // for the step: the server's thread may only need a moment to make it.
  virtual bool Reaches(uint64_t step) = 0;
  // The shard, to inspect it and to drain it.
  virtual Shard& shard() = 0;

  // Lets all of them join, and initializes the parameters with 0.
  void Start(const std::vector<std::string>& workers);
  absl::StatusOr<PushOutcome> Push(const std::string& name, uint64_t step, const Values& gradient) {
    return PushAs(NextHeader(name, step), gradient);
  }
  std::unique_ptr<PendingTake> StartTake(const std::string& name, uint64_t min_step);
  // Starts a pull of the parameters with which the worker continues after its push `after`.
  std::unique_ptr<PendingTake> StartGoOn(const std::string& name, Sequence after);
  absl::StatusOr<Taken> Take(const std::string& name, uint64_t min_step);

  uint64_t step() { return shard().Describe().step.value(); }
  uint32_t waiting() { return shard().Describe().waiting_pulls; }
  Values Parameters();
};

using MakeConformanceWorld = std::unique_ptr<ConformanceWorld> (*)(const ShardOptions& options,
                                                                   const Layout& layout);

// The shard in this process.
std::unique_ptr<ConformanceWorld> MakeShardConformance(const ShardOptions& options,
                                                       const Layout& layout);
// A server with its real gRPC service.
std::unique_ptr<ConformanceWorld> MakeServerConformance(const ShardOptions& options,
                                                        const Layout& layout);
// The same, with gradients and parameters in shared memory.
std::unique_ptr<ConformanceWorld> MakeSharedConformance(const ShardOptions& options,
                                                        const Layout& layout);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_CONFORMANCE_WORLD_H_
