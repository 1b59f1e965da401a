// The ServerConnection to a shard in the same process. It replaces the one over gRPC
// (worker/connection/grpc/connection.h) in tests.

#ifndef SLUICE_TESTS_TESTING_SHARD_SHARD_CONNECTION_H_
#define SLUICE_TESTS_TESTING_SHARD_SHARD_CONNECTION_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "server/shard/shard.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Like every connection, it is used by one thread at a time, and its destructor ends its session.
// Where the connection over gRPC has a deadline, this one blocks without a limit. Calls are late or
// get lost only if a test asks for that with the methods below. Only pulls can be cancelled.
class ShardConnection final : public ServerConnection {
 public:
  // `shard` outlives the connection.
  explicit ShardConnection(Shard& shard);
  ~ShardConnection() override;

  // The next `pushes` pushes end with DEADLINE_EXCEEDED, as if the in-flight limit made them wait.
  void DelayPushes(int pushes) { delayed_pushes_ = pushes; }
  // The next `pulls` pulls end with DEADLINE_EXCEEDED, as if their step were late.
  void DelayPulls(int pulls) { delayed_pulls_ = pulls; }
  // The next `offers` offers of parameters end with DEADLINE_EXCEEDED, as if the server received
  // another worker's.
  void DelayOffers(int offers) { delayed_offers_ = offers; }
  // The server ends the next `pulls` pulls with CANCELLED, to make room.
  void EndPulls(int pulls) { ended_pulls_ = pulls; }
  // The next `pushes`, `joins` or `pulls` calls fail as if the connection broke, and the shard also
  // notices that it broke. It breaks:
  void BreakPushes(int pushes) { broken_pushes_ = pushes; }  // before the push arrives
  void CutPushes(int pushes) { cut_pushes_ = pushes; }       // after its first part has arrived
  void LoseAnswers(int pushes) { lost_answers_ = pushes; }   // after the shard has answered it
  void BreakJoins(int joins) { broken_joins_ = joins; }      // before the join arrives
  void BreakPulls(int pulls) { broken_pulls_ = pulls; }      // before the pull arrives
  // The next pull that brings parameters breaks after half of them have arrived. Then `act` is
  // called.
  void TearPull(std::function<void()> act = [] {}) { torn_pull_ = std::move(act); }
  // From now on, the address belongs to another server, or to none until FindServer().
  void MoveTo(Shard& shard) { shard_ = &shard; }
  void LoseServer() { server_lost_ = true; }
  void FindServer() { server_lost_ = false; }
  int reconnects() const { return reconnects_; }
  int joins() const { return joins_; }  // calls of Join()

  // `act` is called before an offer of initial parameters arrives. With it, a test can let another
  // worker make its offer first.
  void BeforeInitialize(std::function<void()> act) { before_initialize_ = std::move(act); }
  int pulls() const { return pulls_; }  // calls of StartPull()

  // `act` is called instead of each pause before a call is repeated. By default the pause is empty.
  void OnAwaitRetry(std::function<void()> act) { on_await_retry_ = std::move(act); }

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override;
  absl::Status Reconnect() override;
  // If nothing happens and `longest` is finite, it is over at once.
  absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) override;
  void AwaitRetry(absl::Duration longest) override;
  std::unique_ptr<PendingOffer> StartOffer(SessionId session, uint32_t attempt,
                                           uint64_t elements) override;
  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch, const RowGradients& rows) override;
  void UsePullEncoding(const Encoding& /*encoding*/) override {}
  bool stays_on_machine() const override { return true; }
  std::unique_ptr<PendingPull> StartPull(const PullRequest& request) override;
  bool CanPushPull(uint64_t) const override { return false; }
  absl::StatusOr<PushPullAnswer> PushPull(const PushHeader&, const SharedFloats&,
                                          const PullRequest&, absl::Span<float>) override {
    return absl::UnimplementedError("push and pull are two calls here");
  }
  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows) override;
  absl::Status Report(SessionId session, const StepMeasurement& measurement) override;
  absl::Status Leave(SessionId session, const Farewell& farewell) override;

 private:
  class Events;
  class Offer;
  class Push;
  class Pull;
  class RowPull;

  absl::Status Break();

  Shard* shard_;
  const std::shared_ptr<Events> events_;  // the shard's listener may outlive this
  SessionId session_;
  int delayed_pushes_ = 0;
  int delayed_pulls_ = 0;
  int delayed_offers_ = 0;
  int ended_pulls_ = 0;
  int pulls_ = 0;
  int broken_pushes_ = 0;
  int cut_pushes_ = 0;
  int lost_answers_ = 0;
  int broken_joins_ = 0;
  int broken_pulls_ = 0;
  bool server_lost_ = false;
  int reconnects_ = 0;
  int joins_ = 0;
  std::function<void()> torn_pull_;
  std::function<void()> before_initialize_;
  std::function<void()> on_await_retry_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_SHARD_CONNECTION_H_
