#include "worker/connection/striped_connection.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/executor_pool.h"
#include "common/tensor/stripes.h"
#include "worker/connection/failed_calls.h"
#include "worker/connection/striped_calls.h"

namespace sluice {
namespace {

class StripedConnection final : public ServerConnection {
 public:
  StripedConnection(std::unique_ptr<ServerConnection> first, DialServer dial,
                    absl::Duration patience)
      : first_(std::move(first)), dial_(std::move(dial)), patience_(patience) {}

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    auto welcome = first_->Join(request);
    if (!welcome.ok()) return welcome;
    attempts_ = 0;
    pulls_ = 0;
    TakeServers(welcome->servers.size() > 1 ? welcome->servers : std::vector<std::string>());
    stripes_ = Stripes(request.layout.size(), count());
    tables_ = request.layout.tables();
    const absl::Status dialed = DialMissing();
    if (!dialed.ok()) return dialed;
    for (uint32_t i = 1; i < servers_.size(); ++i) {
      servers_[i]->BeginSession(welcome->session, stripes_.SizeOf(i), request.memory);
    }
    return welcome;
  }

  // The other servers may come back at other addresses, so Join() dials them.
  absl::Status Reconnect() override {
    for (auto& server : servers_) server = nullptr;
    return first_->Reconnect();
  }

  absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) override {
    return first_->NextEvent(longest);
  }
  void AwaitRetry(absl::Duration longest) override { first_->AwaitRetry(longest); }
  absl::Status Report(SessionId session, const StepMeasurement& measurement) override {
    return first_->Report(session, measurement);
  }
  absl::Status Leave(SessionId session, const Farewell& farewell) override {
    return first_->Leave(session, farewell);
  }
  void BeginSession(SessionId session, uint64_t elements,
                    std::shared_ptr<const SharedMemory> memory) override {
    first_->BeginSession(session, elements, std::move(memory));
  }
  bool CanPushPull(uint64_t elements) const override {
    return count() == 1 && first_->CanPushPull(elements);
  }
  absl::StatusOr<PushPullAnswer> PushPull(const PushHeader& header, const SharedFloats& gradient,
                                          const PullRequest& request,
                                          absl::Span<float> parameters) override {
    return first_->PushPull(header, gradient, request, parameters);
  }
  bool stays_on_machine() const override {
    return first_->stays_on_machine() &&
           std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
             return server == nullptr || server->stays_on_machine();
           });
  }
  // The others measure the pushes that the first one wants without pauses.
  bool measures_push() const override { return first_->measures_push(); }

  void UsePullEncoding(const Encoding& encoding) override {
    pull_encoding_ = encoding;
    first_->UsePullEncoding(encoding);
    for (const auto& server : servers_) {
      if (server != nullptr) server->UsePullEncoding(encoding);
    }
  }

  std::unique_ptr<PendingOffer> StartOffer(SessionId session, uint32_t attempt,
                                           uint64_t elements) override {
    if (servers_.empty()) return first_->StartOffer(session, attempt, elements);
    const absl::Status connected = CheckConnected();
    if (!connected.ok()) return FailedOffer(connected);
    ++attempts_;
    std::vector<std::unique_ptr<PendingOffer>> offers;
    ForEachServer([&](ServerConnection& server, uint32_t stripe) {
      offers.push_back(server.StartOffer(session, attempts_, stripes_.SizeOf(stripe)));
    });
    return JoinOffers(std::move(offers), OptionsWith(push_threads_));
  }

  absl::StatusOr<uint64_t> OfferConstants(SessionId session, uint64_t checksum,
                                          const std::vector<absl::Span<char>>& values) override {
    return first_->OfferConstants(session, checksum, values);
  }

  absl::StatusOr<PulledConstants> PullConstants(SessionId session, uint64_t bytes) override {
    return first_->PullConstants(session, bytes);
  }

  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch, const RowGradients& rows) override {
    if (servers_.empty()) return first_->StartPush(header, elements, batch, rows);
    const absl::Status connected = CheckConnected();
    if (!connected.ok()) return FailedPush(connected);
    const std::vector<RowGradients> split = SplitRows(rows, count());
    PushHeader numbered = header;
    numbered.attempt = ++attempts_;
    PushHeader of_stripe = numbered;
    of_stripe.running_means = nullptr;  // they count the whole vector's elements
    std::vector<std::unique_ptr<OutgoingPush>> pushes(count());
    const auto start = [&](ServerConnection& server, uint32_t stripe) {
      pushes[stripe] = server.StartPush(stripe == 0 ? numbered : of_stripe, stripes_.SizeOf(stripe),
                                        batch, split[stripe]);
    };
    if (rows.empty()) {
      ForEachServer(start);
    } else {
      AtOnce(*push_threads_, start);
    }
    return JoinPushes(std::move(pushes), OptionsWith(push_threads_));
  }

  std::unique_ptr<PendingPull> StartPull(const PullRequest& request) override {
    if (servers_.empty()) return first_->StartPull(request);
    const absl::Status connected = CheckConnected();
    if (!connected.ok()) return FailedPull(connected);
    PullRequest numbered = request;
    numbered.number = ++pulls_;
    std::vector<std::unique_ptr<PendingPull>> pulls;
    // Otherwise fast steps could overwrite one server's parameters, then another's, without end.
    const bool may_lie = !*overwritten_;
    ForEachServer([&](ServerConnection& server, uint32_t) {
      server.ReadWhereTheyLie(may_lie);
      pulls.push_back(server.StartPull(numbered));
    });
    return JoinPulls(std::move(pulls), OptionsWith(pull_threads_));
  }

  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows) override {
    if (servers_.empty()) return first_->StartRowPull(request, rows);
    const absl::Status connected = CheckConnected();
    if (!connected.ok()) return FailedPull(connected);
    PullRequest numbered = request;
    numbered.number = ++pulls_;
    std::vector<RowsOfServer> split = SplitRows(rows, count());
    std::vector<std::unique_ptr<PendingPull>> pulls(count());
    AtOnce(*row_threads_, [&](ServerConnection& server, uint32_t stripe) {
      pulls[stripe] = server.StartRowPull(numbered, split[stripe].rows);
    });
    return JoinRowPulls(std::move(pulls), RowPlaces(rows, split, tables_),
                        OptionsWith(row_threads_));
  }

 private:
  uint32_t count() const { return servers_.empty() ? 1 : static_cast<uint32_t>(servers_.size()); }

  // Keeps the connections to servers that are still there.
  void TakeServers(const std::vector<std::string>& addresses) {
    const bool as_many = servers_.size() == addresses.size();
    servers_.resize(addresses.size());
    addresses_.resize(addresses.size());
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (addresses_[i] != addresses[i]) servers_[i] = nullptr;
    }
    addresses_ = addresses;
    if (as_many) return;
    push_threads_ = addresses.empty() ? nullptr : MakeThreads("push");
    pull_threads_ = addresses.empty() ? nullptr : MakeThreads("pull");
    row_threads_ = addresses.empty() ? nullptr : MakeThreads("rows");
  }

  std::shared_ptr<Executor> MakeThreads(const std::string& name) const {
    return std::make_shared<ExecutorPool>(count(), name);
  }

  absl::Status DialMissing() {
    for (uint32_t i = 1; i < servers_.size(); ++i) {
      if (servers_[i] != nullptr) continue;
      auto dialed = dial_(addresses_[i]);
      if (!dialed.ok()) return NamedError(i, addresses_, dialed.status());
      servers_[i] = *std::move(dialed);
      if (pull_encoding_.has_value()) servers_[i]->UsePullEncoding(*pull_encoding_);
    }
    return absl::OkStatus();
  }

  // Servers are missing if Join() has failed.
  absl::Status CheckConnected() const {
    for (uint32_t i = 1; i < servers_.size(); ++i) {
      if (servers_[i] != nullptr) continue;
      return NamedError(i, addresses_, absl::UnavailableError("it is not connected"));
    }
    return absl::OkStatus();
  }

  // The same as ForEachServer(), at the same time: a call that sends ids or rows blocks until the
  // server has taken most of them.
  template <typename Act>
  void AtOnce(Executor& threads, const Act& act) {
    ForEachServer([&](ServerConnection& server, uint32_t stripe) {
      threads.Run([&act, &server, stripe] { act(server, stripe); });
    });
    threads.Drain();
  }

  // Calls act(connection, stripe) for each server.
  template <typename Act>
  void ForEachServer(const Act& act) {
    act(*first_, 0);
    for (uint32_t i = 1; i < servers_.size(); ++i) act(*servers_[i], i);
  }

  StripedCallOptions OptionsWith(std::shared_ptr<Executor> threads) const {
    return {stripes_, addresses_, std::move(threads), patience_, overwritten_};
  }

  const std::unique_ptr<ServerConnection> first_;
  const DialServer dial_;
  const absl::Duration patience_;
  // Empty if there is one server. The first element is null in `servers_`, and another one while
  // that server cannot be reached: then there is no session.
  std::vector<std::unique_ptr<ServerConnection>> servers_;
  std::vector<std::string> addresses_;
  Stripes stripes_ = Stripes(0, 1);
  absl::optional<Encoding> pull_encoding_;  // unless it is as when the connection was made
  uint32_t attempts_ = 0;                   // of this session
  uint64_t pulls_ = 0;                      // of this session
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
