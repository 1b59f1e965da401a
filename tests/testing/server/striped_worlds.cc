#include "tests/testing/server/striped_worlds.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace sluice {
namespace {

// How many of the other servers have their part of each attempt. Shared by the connections of one
// worker.
class Parts {
 public:
  explicit Parts(uint32_t others) : others_(others) {}

  void Take(uint32_t attempt) {
    absl::MutexLock lock(&mu_);
    ++taken_[attempt];
  }
  void GiveUp(uint32_t attempt) {
    absl::MutexLock lock(&mu_);
    given_up_[attempt] = true;
  }
  // Waits until all have it. False if it is given up.
  bool Await(uint32_t attempt) {
    const auto over = [&] { return taken_[attempt] == others_ || given_up_[attempt]; };
    absl::MutexLock lock(&mu_, absl::Condition(&over));
    return taken_[attempt] == others_;
  }

 private:
  const uint32_t others_;
  absl::Mutex mu_;
  std::map<uint32_t, uint32_t> taken_;
  std::map<uint32_t, bool> given_up_;
};

struct PartRole {
  uint32_t server;
  Stripes stripes;
  Layout layout;  // of the whole vector
  std::vector<std::string> servers;
  std::shared_ptr<Parts> parts;
  std::shared_ptr<JoinRequest> request;  // of the worker's latest session
};

class PartPush final : public OutgoingPush {
 public:
  PartPush(std::unique_ptr<OutgoingPush> push, const PartRole& role, uint32_t attempt)
      : push_(std::move(push)), role_(role), attempt_(attempt) {}

  bool Send(uint64_t offset, const SharedFloats& part) override {
    return push_->Send(offset, part);
  }
  bool SendEncoded(const EncodedChunk& chunk, uint64_t taken) override {
    return push_->SendEncoded(chunk, taken);
  }
  absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) override {
    if (role_.server == 0 && !role_.parts->Await(attempt_)) return absl::CancelledError("given up");
    auto outcome = push_->Finish(summary);
    if (role_.server > 0 && outcome.ok()) {
      outcome->disposition = Disposition::kPartTaken;
      role_.parts->Take(attempt_);
    }
    return outcome;
  }
  void Cancel() override {
    if (role_.server == 0) role_.parts->GiveUp(attempt_);
    push_->Cancel();
  }
  Transfer transfer() const override { return push_->transfer(); }

 private:
  const std::unique_ptr<OutgoingPush> push_;
  const PartRole role_;
  const uint32_t attempt_;
};

class PartOffer final : public PendingOffer {
 public:
  PartOffer(std::unique_ptr<PendingOffer> offer, const PartRole& role, uint32_t attempt)
      : offer_(std::move(offer)), role_(role), attempt_(attempt) {}

  absl::StatusOr<InitializeOutcome> Send(const StripeSpan<const float>& parameters) override {
    if (role_.server == 0 && !role_.parts->Await(attempt_)) return absl::CancelledError("given up");
    const auto outcome = offer_->Send(parameters);
    if (role_.server > 0 && outcome.ok()) role_.parts->Take(attempt_);
    return outcome;
  }
  void Cancel() override {
    if (role_.server == 0) role_.parts->GiveUp(attempt_);
    offer_->Cancel();
  }

 private:
  const std::unique_ptr<PendingOffer> offer_;
  const PartRole role_;
  const uint32_t attempt_;
};

// Has a session of its own with its server's shard, which stands for the worker's.
class PartConnection final : public ServerConnection {
 public:
  PartConnection(std::unique_ptr<ServerConnection> connection, PartRole role)
      : connection_(std::move(connection)), role_(std::move(role)) {}

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    *role_.request = request;
    auto welcome = Open();
    if (welcome.ok()) welcome->servers = role_.servers;
    return welcome;
  }
  absl::StatusOr<Welcome> Open() {
    JoinRequest request = *role_.request;
    request.layout = role_.layout.OfStripe(role_.stripes, role_.server);
    auto welcome = connection_->Join(request);
    if (welcome.ok()) session_ = welcome->session;
    return welcome;
  }
  absl::Status Reconnect() override {
    const absl::Status back = connection_->Reconnect();
    return back.ok() && role_.server > 0 ? Open().status() : back;
  }
  absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) override {
    return connection_->NextEvent(longest);
  }
  void AwaitRetry(absl::Duration longest) override { connection_->AwaitRetry(longest); }
  std::unique_ptr<PendingOffer> StartOffer(SessionId, uint32_t attempt,
                                           uint64_t elements) override {
    return std::make_unique<PartOffer>(connection_->StartOffer(session_, attempt, elements), role_,
                                       attempt);
  }
  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch, const RowGradients& rows) override {
    PushHeader own = header;
    own.session = session_;
    return std::make_unique<PartPush>(connection_->StartPush(own, elements, batch, rows), role_,
                                      header.attempt);
  }
  absl::StatusOr<PulledSlots> PullSlots(SessionId, uint64_t elements) override {
    return connection_->PullSlots(session_, elements);
  }
  void UsePullEncoding(const Encoding& encoding) override {
    connection_->UsePullEncoding(encoding);
  }
  bool stays_on_machine() const override { return connection_->stays_on_machine(); }
  std::unique_ptr<PendingPull> StartPull(const PullRequest& request) override {
    return connection_->StartPull(Own(request));
  }
  bool CanPushPull(uint64_t) const override { return false; }
  absl::StatusOr<PushPullAnswer> PushPull(const PushHeader&, const SharedFloats&,
                                          const PullRequest&, absl::Span<float>) override {
    return absl::UnimplementedError("push and pull are two calls here");
  }
  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows) override {
    return connection_->StartRowPull(Own(request), rows);
  }
  absl::Status Report(SessionId, const StepMeasurement& measurement) override {
    return connection_->Report(session_, measurement);
  }
  absl::Status Leave(SessionId, const Farewell& farewell) override {
    return connection_->Leave(session_, farewell);
  }

 private:
  PullRequest Own(PullRequest request) const {
    request.session = session_;
    return request;
  }

  const std::unique_ptr<ServerConnection> connection_;
  const PartRole role_;
  SessionId session_;
};

}  // namespace

StripedWorlds::StripedWorlds(const Layout& layout, uint32_t servers, Transport transport,
                             const ShardOptions& options)
    : layout_(layout), stripes_(layout.size(), servers), transport_(transport) {
  for (uint32_t i = 0; i < servers; ++i) {
    worlds_.push_back(std::make_unique<ServerWorld>(options, layout.OfStripe(stripes_, i)));
  }
}

std::unique_ptr<ServerConnection> StripedWorlds::Connect(absl::Duration patience) {
  PartRole role = {0, stripes_, layout_, {}, nullptr, std::make_shared<JoinRequest>()};
  for (size_t i = 0; i < worlds_.size(); ++i) role.servers.push_back(absl::StrCat(i));
  role.parts = std::make_shared<Parts>(static_cast<uint32_t>(worlds_.size() - 1));
  const auto dial =
      [this,
       role](const std::string& address) -> absl::StatusOr<std::unique_ptr<ServerConnection>> {
    PartRole other = role;
    if (!absl::SimpleAtoi(address, &other.server)) return absl::InternalError(address);
    auto part = std::make_unique<PartConnection>(transport_(world(other.server)), other);
    const auto welcome = part->Open();
    if (!welcome.ok()) return welcome.status();
    return std::unique_ptr<ServerConnection>(std::move(part));
  };
  return MakeStripedConnection(std::make_unique<PartConnection>(transport_(world(0)), role), dial,
                               patience);
}

}  // namespace sluice
