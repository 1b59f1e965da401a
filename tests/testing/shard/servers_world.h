// The servers of a job in one process, one or several, and the streams of its workers. One thread
// plays all of them: in turn, or as the dice say, with links that are late.

#ifndef SLUICE_TESTS_TESTING_SHARD_SERVERS_WORLD_H_
#define SLUICE_TESTS_TESTING_SHARD_SERVERS_WORLD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
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
  struct Part {
    PushId waits;    // at its header
    PushId gathers;  // for the parts of other servers
    std::unique_ptr<PendingPush> push;
  };

  bool is_offer = false;
  PushHeader header;
  absl::optional<Gradient> gradient;  // once it is to be sent
  std::vector<Part> parts;            // by server
  bool broken = false;                // its worker has given it up
  int answers = 0;
  int refused = 0;  // parts, by servers that are not the first
  absl::StatusOr<PushOutcome> outcome = absl::UnknownError("not answered");
  absl::StatusOr<InitializeOutcome> initialized = absl::UnknownError("not answered");
};

// The streams of one pull from all servers.
struct StripedPull {
  std::vector<PullId> ids;                                 // by server
  std::map<uint32_t, absl::StatusOr<PullResult>> answers;  // by server
};

class ServersWorld {
 public:
  using CallPtr = std::shared_ptr<StripedCall>;
  using PullPtr = std::shared_ptr<StripedPull>;

  // Without a seed all happens in turn: what a worker does, then what the servers tell each other.
  ServersWorld(const ShardOptions& options, const Layout& model, uint32_t servers,
               absl::optional<uint64_t> seed, JobListener owner = nullptr);
  ~ServersWorld();

  Shard& shard() { return *shard_; }
  FakeClock& clock() { return clock_; }
  uint32_t servers() const { return stripes_.count(); }
  std::mt19937& dice() { return dice_; }

  // Worker "w1" joins, also again: then its earlier session ends.
  SessionId Join(uint32_t worker, const OptimizerConfig& optimizer);

  // Sends the streams to those of the servers for which `sends` is true, one at any time. Without a
  // gradient it is only the header; see Finish().
  using Sends = std::function<bool(uint32_t)>;
  CallPtr Push(const PushHeader& header, absl::optional<Gradient> gradient,
               const Sends& sends = nullptr);
  CallPtr Offer(SessionId session, uint32_t attempt, const Values& parameters,
                const Sends& sends = nullptr);
  void Finish(const CallPtr& call, const Gradient& gradient);
  // The worker gives it up, and cancels what is under way of it.
  void Break(StripedCall& call);
  PullPtr Pull(const PullRequest& request);
  // Whether the first server had not answered it.
  bool Cancel(StripedPull& pull);

  // Something happens: an event of a worker's stream, or of a link.
  void Act();
  void Pump(absl::FunctionRef<bool()> until);
  // Until nothing is under way but what HoldLinks() holds: the messages between servers.
  void Settle();
  void HoldLinks(bool hold);

  // The vector of which the pull has brought all stripes.
  Values Joined(const StripedPull& pull) const;
  // The row of `id`, of the step that the pull has brought.
  Values RowOf(const StripedPull& pull, uint32_t table, RowId id) const;

 private:
  void AddReplica(uint32_t server);
  ParameterStore& store(uint32_t server);
  CallPtr Send(CallPtr call, const Sends& sends);
  void Begin(uint32_t server, const CallPtr& call);
  void BeginOffer(uint32_t server, const CallPtr& call);
  void Admit(uint32_t server, const CallPtr& call, std::unique_ptr<PendingPush> push);
  void SendPart(uint32_t server, const CallPtr& call);
  void EndPart(uint32_t server, StripedCall& call);
  absl::Status AddPart(const Gradient& gradient, uint32_t server, PendingPush& push) const;
  Values PartOf(const Values& whole, uint32_t stripe) const;
  bool LinksAreIdle() const;

  const Layout model_;
  const Stripes stripes_;
  const absl::optional<uint64_t> seed_;
  std::mt19937 dice_;
  FakeClock clock_;
  std::deque<std::function<void()>> events_;
  std::unique_ptr<Shard> shard_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<TestLink>> links_;
  std::vector<PromptLink*> prompt_;  // of these, those that come in turn
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_SERVERS_WORLD_H_
