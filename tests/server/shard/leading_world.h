// A shard that leads replicas on other servers, behind links that are late, and its workers. One
// thread plays all of them, and the dice say what happens next.

#ifndef SLUICE_TESTS_SERVER_SHARD_LEADING_WORLD_H_
#define SLUICE_TESTS_SERVER_SHARD_LEADING_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/tensor/stripes.h"
#include "server/replica/replica.h"
#include "server/shard/shard.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/replica/late_link.h"
#include "tests/testing/vectors.h"

namespace sluice {

// Rows of tables: by the index of their table, and their id.
using RowValues = std::map<std::pair<uint32_t, RowId>, Values>;

struct Gradient {
  Values vector;
  RowValues rows = {};
};

// The streams of one push, or of one offer of parameters, to all servers.
struct StripedCall {
  PushHeader header;
  Gradient gradient;
  bool broken = false;                   // its worker has given it up
  PushId waits;                          // while the shard holds the stream at its header
  PushId gathers;                        // while the shard waits for the parts of other servers
  std::map<uint32_t, PushId> elsewhere;  // by server: while it holds the stream at its header
  std::unique_ptr<PendingPush> own;
  int answers = 0;
  int refused = 0;  // parts, by other servers
  absl::StatusOr<PushOutcome> outcome = absl::UnknownError("not answered");
  absl::StatusOr<InitializeOutcome> initialized = absl::UnknownError("not answered");
};

// The streams of one pull from all servers.
struct StripedPull {
  PullId waits;
  std::map<uint32_t, absl::StatusOr<PullResult>> answers;  // by server
};

class LeadingWorld {
 public:
  // `servers` counts the shard's own.
  LeadingWorld(const ShardOptions& options, const Layout& model, const OptimizerConfig& optimizer,
               uint32_t servers, uint64_t seed);
  ~LeadingWorld();

  Shard& shard() { return *shard_; }
  Replica& replica(uint32_t server) { return *followers_[server - 1]; }
  uint32_t servers() const { return stripes_.count(); }
  std::mt19937& dice() { return dice_; }

  // The worker joins, also again: then its earlier session ends.
  SessionId Join(uint32_t worker);

  // Sends the streams to those of the servers for which `sends` is true, one at any time.
  std::shared_ptr<StripedCall> Push(const PushHeader& header, const Gradient& gradient,
                                    const std::function<bool(uint32_t)>& sends = nullptr);
  std::shared_ptr<StripedCall> Offer(SessionId session, uint32_t attempt, const Values& parameters,
                                     const std::function<bool(uint32_t)>& sends = nullptr);
  // The worker gives it up, and cancels what is under way of it.
  void Break(StripedCall& call);
  std::shared_ptr<StripedPull> Pull(const PullRequest& request);

  // Something happens: an event of a worker's stream, or of a link.
  void Act();
  void Pump(absl::FunctionRef<bool()> until);
  // Until nothing is under way.
  void Settle();

  // The vector of which the pull has brought all stripes.
  Values Joined(const StripedPull& pull) const;
  // The row of `id`, of the step that the pull has brought.
  Values RowOf(const StripedPull& pull, uint32_t table, RowId id) const;

 private:
  using CallPtr = std::shared_ptr<StripedCall>;

  void AddReplica(uint32_t server);
  CallPtr Send(CallPtr call, const std::function<bool(uint32_t)>& sends);
  void SendToReplica(uint32_t server, const CallPtr& call);
  void SendToShard(const CallPtr& call);
  void OfferToShard(const CallPtr& call);
  void EndOwn(StripedCall& call);
  absl::Status AddPart(const Gradient& gradient, uint32_t server, PendingPush& push) const;
  Values PartOf(const Values& whole, uint32_t stripe) const;

  const Layout model_;
  const OptimizerConfig optimizer_;
  const Stripes stripes_;
  const uint64_t seed_;
  std::mt19937 dice_;
  FakeClock clock_;
  std::vector<std::function<void()>> events_;
  std::unique_ptr<Shard> shard_;
  std::vector<std::unique_ptr<Replica>> followers_;
  std::vector<std::unique_ptr<LateLink>> links_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_SHARD_LEADING_WORLD_H_
