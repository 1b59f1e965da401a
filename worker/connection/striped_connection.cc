#include "worker/connection/striped_connection.h"

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/executor_pool.h"
#include "common/tensor/stripes.h"
#include "worker/connection/failed_calls.h"
#include "worker/connection/striped_calls.h"

namespace sluice {
namespace {

// So often their slots may be of different steps.
constexpr int kMostPullsOfSlots = 30;

class StripedConnection final : public ServerConnection {
 public:
  StripedConnection(std::unique_ptr<ServerConnection> first, DialServer dial,
                    absl::Duration patience)
      : servers_(std::move(first), std::move(dial)), patience_(patience) {}

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    auto welcome = servers_.first().Join(request);
    if (!welcome.ok()) return welcome;
    attempts_ = 0;
    pulls_ = 0;
    TakeServers(welcome->servers);
    stripes_ = Stripes(request.layout.size(), servers_.count());
    tables_ = request.layout.tables();
    const absl::Status dialed = servers_.DialMissing();
    if (!dialed.ok()) return dialed;
    servers_.ForEach([&](ServerConnection& server, uint32_t stripe) {
      if (stripe == 0) return;  // it has begun its session
      server.BeginSession(welcome->session, stripes_.SizeOf(stripe), request.memory);
    });
    return welcome;
  }

  // The other servers may come back at other addresses, so Join() dials them.
  absl::Status Reconnect() override {
    servers_.CloseOthers();
    return servers_.first().Reconnect();
  }

  absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) override {
    return servers_.first().NextEvent(longest);
  }
  void AwaitRetry(absl::Duration longest) override { servers_.first().AwaitRetry(longest); }
  absl::Status Report(SessionId session, const StepMeasurement& measurement) override {
    return servers_.first().Report(session, measurement);
  }
  absl::Status Leave(SessionId session, const Farewell& farewell) override {
    return servers_.first().Leave(session, farewell);
  }
  void BeginSession(SessionId session, uint64_t elements,
                    std::shared_ptr<const SharedMemory> memory) override {
    servers_.first().BeginSession(session, elements, std::move(memory));
  }
  bool CanPushPull(uint64_t elements) const override {
    return servers_.count() == 1 && servers_.first().CanPushPull(elements);
  }
  absl::StatusOr<PushPullAnswer> PushPull(const PushHeader& header, const SharedFloats& gradient,
                                          const PullRequest& request,
                                          absl::Span<float> parameters) override {
    return servers_.first().PushPull(header, gradient, request, parameters);
  }
  bool stays_on_machine() const override { return servers_.stay_on_machine(); }
  // The others measure the pushes that the first one wants without pauses.
  bool measures_push() const override { return servers_.first().measures_push(); }

  void UsePullEncoding(const Encoding& encoding) override { servers_.UsePullEncoding(encoding); }

  std::unique_ptr<PendingOffer> StartOffer(SessionId session, uint32_t attempt,
                                           uint64_t elements) override {
    if (servers_.count() == 1) return servers_.first().StartOffer(session, attempt, elements);
    const absl::Status connected = servers_.CheckConnected();
    if (!connected.ok()) return FailedOffer(connected);
    ++attempts_;
    std::vector<std::unique_ptr<PendingOffer>> offers;
    servers_.ForEach([&](ServerConnection& server, uint32_t stripe) {
      offers.push_back(server.StartOffer(session, attempts_, stripes_.SizeOf(stripe)));
    });
    return JoinOffers(std::move(offers), OptionsWith(push_threads_));
  }

  absl::StatusOr<uint64_t> OfferConstants(SessionId session, uint64_t checksum,
                                          const std::vector<absl::Span<char>>& values) override {
    return servers_.first().OfferConstants(session, checksum, values);
  }

  absl::StatusOr<PulledConstants> PullConstants(SessionId session, uint64_t bytes) override {
    return servers_.first().PullConstants(session, bytes);
  }

  absl::StatusOr<PulledState> PullState(SessionId session,
                                        absl::optional<uint64_t> steps) override {
    return servers_.first().PullState(session, steps);
  }

  absl::Status OfferState(SessionId session, const absl::StatusOr<std::string>& bytes) override {
    return servers_.first().OfferState(session, bytes);
  }

  // Each server copies them between two steps. So in sync they are of one step: that of this
  // worker.
  absl::StatusOr<PulledSlots> PullSlots(SessionId session, uint64_t elements) override {
    if (servers_.count() == 1) return servers_.first().PullSlots(session, elements);
    absl::Status connected = servers_.CheckConnected();
    if (!connected.ok()) return connected;
    for (int pulls = 0; pulls < kMostPullsOfSlots; ++pulls) {
      std::vector<absl::StatusOr<PulledSlots>> parts(servers_.count());
      AtOnce(*pull_threads_, [&](ServerConnection& server, uint32_t stripe) {
        parts[stripe] = server.PullSlots(session, stripes_.SizeOf(stripe));
      });
      auto joined = JoinSlots(parts, OptionsWith(nullptr));
      if (!joined.ok()) return joined.status();
      if (joined->has_value()) return **std::move(joined);
    }
    return absl::DeadlineExceededError(absl::StrCat(
        "the servers make steps so fast that their parts of the optimizer's state were ",
        "of different ones ", kMostPullsOfSlots, " times; pull it when fewer workers ",
        "train, or let the servers save it (--checkpoint-dir)"));
  }

  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch, const RowGradients& rows) override {
    if (servers_.count() == 1) return servers_.first().StartPush(header, elements, batch, rows);
    const absl::Status connected = servers_.CheckConnected();
    if (!connected.ok()) return FailedPush(connected);
    const std::vector<RowGradients> split = SplitRows(rows, servers_.count());
    PushHeader numbered = header;
    numbered.attempt = ++attempts_;
    PushHeader of_stripe = numbered;
    of_stripe.running_means = nullptr;  // they count the whole vector's elements
    of_stripe.options = nullptr;
    of_stripe.clip_norm.reset();
    std::vector<std::unique_ptr<OutgoingPush>> pushes(servers_.count());
    const auto start = [&](ServerConnection& server, uint32_t stripe) {
      pushes[stripe] = server.StartPush(stripe == 0 ? numbered : of_stripe, stripes_.SizeOf(stripe),
                                        batch, split[stripe]);
    };
    if (rows.empty()) {
      servers_.ForEach(start);
    } else {
      AtOnce(*push_threads_, start);
    }
    return JoinPushes(std::move(pushes), OptionsWith(push_threads_));
  }

  std::unique_ptr<PendingPull> StartPull(const PullRequest& request) override {
    if (servers_.count() == 1) return servers_.first().StartPull(request);
    const absl::Status connected = servers_.CheckConnected();
    if (!connected.ok()) return FailedPull(connected);
    PullRequest numbered = request;
    numbered.number = ++pulls_;
    std::vector<std::unique_ptr<PendingPull>> pulls;
    // Otherwise fast steps could overwrite one server's parameters, then another's, without end.
    const bool may_lie = !*overwritten_;
    servers_.ForEach([&](ServerConnection& server, uint32_t) {
      server.ReadWhereTheyLie(may_lie);
      pulls.push_back(server.StartPull(numbered));
    });
    return JoinPulls(std::move(pulls), overwritten_, OptionsWith(pull_threads_));
  }

  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows) override {
    if (servers_.count() == 1) return servers_.first().StartRowPull(request, rows);
    const absl::Status connected = servers_.CheckConnected();
    if (!connected.ok()) return FailedPull(connected);
    PullRequest numbered = request;
    numbered.number = ++pulls_;
    std::vector<RowsOfServer> split = SplitRows(rows, servers_.count());
    std::vector<std::unique_ptr<PendingPull>> pulls(servers_.count());
    AtOnce(*row_threads_, [&](ServerConnection& server, uint32_t stripe) {
      pulls[stripe] = server.StartRowPull(numbered, split[stripe].rows);
    });
    return JoinRowPulls(std::move(pulls), RowPlaces(rows, split, tables_),
                        OptionsWith(row_threads_));
  }

 private:
  // Threads for as many servers as there are now.
  void TakeServers(const std::vector<std::string>& addresses) {
    const uint32_t before = servers_.count();
    servers_.Take(addresses);
    const uint32_t count = servers_.count();
    if (count == before) return;
    const auto threads = [&](const std::string& name) {
      return count == 1 ? nullptr : std::make_shared<ExecutorPool>(count, name);
    };
    push_threads_ = threads("push");
    pull_threads_ = threads("pull");
    row_threads_ = threads("rows");
  }

  // As ServerGroup::ForEach(), at the same time: a call that sends ids or rows blocks until the
  // server has taken most of them.
  template <typename Act>
  void AtOnce(Executor& threads, const Act& act) {
    servers_.ForEach([&](ServerConnection& server, uint32_t stripe) {
      threads.Run([&act, &server, stripe] { act(server, stripe); });
    });
    threads.Drain();
  }

  StripedCallOptions OptionsWith(std::shared_ptr<Executor> threads) const {
    return {stripes_, servers_.addresses(), std::move(threads), patience_};
  }

  ServerGroup servers_;
  const absl::Duration patience_;
  Stripes stripes_ = Stripes(0, 1);
  uint32_t attempts_ = 0;  // of this session
  uint64_t pulls_ = 0;     // of this session
  const std::shared_ptr<std::atomic<bool>> overwritten_ = std::make_shared<std::atomic<bool>>();
  std::vector<TableSpec> tables_;
  // Pulls have their own, since a pull may be read while a push goes on, and rows while a pull
  // does. Calls share them, since rows may be read when the connection is gone.
  std::shared_ptr<Executor> push_threads_;
  std::shared_ptr<Executor> pull_threads_;
  std::shared_ptr<Executor> row_threads_;
};

}  // namespace

std::unique_ptr<ServerConnection> MakeStripedConnection(std::unique_ptr<ServerConnection> first,
                                                        DialServer dial, absl::Duration patience) {
  return std::make_unique<StripedConnection>(std::move(first), std::move(dial), patience);
}

}  // namespace sluice
