// A connection that reports the transfer times of a slow link, so that tests need no slow link. It
// does not slow anything down.

#ifndef SLUICE_TESTS_TESTING_SHARD_SLOW_LINK_H_
#define SLUICE_TESTS_TESTING_SHARD_SLOW_LINK_H_

#include <memory>
#include <utility>

#include "worker/connection/server_connection.h"

namespace sluice {

// The same transfer over a link that carries `link` bytes per second.
inline Transfer AtSpeed(const Transfer& transfer, double link) {
  return {transfer.bytes, absl::Seconds(static_cast<double>(transfer.bytes) / link)};
}

class SlowPull final : public PendingPull {
 public:
  SlowPull(std::unique_ptr<PendingPull> pull, double link) : pull_(std::move(pull)), link_(link) {}

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& parameters) override {
    return pull_->Read(parameters);
  }
  void Cancel() override { pull_->Cancel(); }
  bool wrote() const override { return pull_->wrote(); }
  Transfer transfer() const override { return AtSpeed(pull_->transfer(), link_); }

 private:
  const std::unique_ptr<PendingPull> pull_;
  const double link_;
};

// A push that was stale says that a chunk took an hour: such a time tells nothing
// of the link.
class SlowPush final : public OutgoingPush {
 public:
  SlowPush(std::unique_ptr<OutgoingPush> push, double link) : push_(std::move(push)), link_(link) {}

  bool Send(uint64_t offset, const SharedFloats& part) override {
    return push_->Send(offset, part);
  }
  bool SendEncoded(const EncodedChunk& chunk, uint64_t taken) override {
    return push_->SendEncoded(chunk, taken);
  }
  absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) override {
    auto outcome = push_->Finish(summary);
    stale_ = outcome.ok() && outcome->disposition == Disposition::kStaleDropped;
    return outcome;
  }
  void Cancel() override { push_->Cancel(); }
  Transfer transfer() const override {
    if (stale_) return {kChunkElements * sizeof(float), absl::Hours(1)};
    return AtSpeed(push_->transfer(), link_);
  }

 private:
  const std::unique_ptr<OutgoingPush> push_;
  const double link_;
  bool stale_ = false;
};

class SlowLink final : public ServerConnection {
 public:
  SlowLink(std::unique_ptr<ServerConnection> connection, double link)
      : connection_(std::move(connection)), link_(link) {}

  // The number of connections is being chosen for so many pushes.
  void MeasurePushes(int pushes) { measured_pushes_ = pushes; }

  absl::StatusOr<Welcome> Join(const JoinRequest& request) override {
    return connection_->Join(request);
  }
  absl::Status Reconnect() override { return connection_->Reconnect(); }
  absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) override {
    return connection_->NextEvent(longest);
  }
  void AwaitRetry(absl::Duration longest) override { connection_->AwaitRetry(longest); }
  std::unique_ptr<PendingOffer> StartOffer(SessionId session, uint32_t attempt,
                                           uint64_t elements) override {
    return connection_->StartOffer(session, attempt, elements);
  }
  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch, const RowGradients& rows) override {
    if (measured_pushes_ > 0) --measured_pushes_;
    return std::make_unique<SlowPush>(connection_->StartPush(header, elements, batch, rows), link_);
  }
  std::unique_ptr<PendingPull> StartPull(const PullRequest& request) override {
    return std::make_unique<SlowPull>(connection_->StartPull(request), link_);
  }
  bool CanPushPull(uint64_t) const override { return false; }
  absl::StatusOr<PushPullAnswer> PushPull(const PushHeader&, const SharedFloats&,
                                          const PullRequest&, absl::Span<float>) override {
    return absl::UnimplementedError("push and pull are two calls here");
  }
  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows) override {
    return connection_->StartRowPull(request, rows);
  }
  void UsePullEncoding(const Encoding& encoding) override {
    connection_->UsePullEncoding(encoding);
  }
  bool stays_on_machine() const override { return connection_->stays_on_machine(); }
  bool measures_push() const override { return measured_pushes_ > 0; }
  absl::Status Report(SessionId session, const StepMeasurement& measurement) override {
    return connection_->Report(session, measurement);
  }
  absl::Status Leave(SessionId session, const Farewell& farewell) override {
    return connection_->Leave(session, farewell);
  }

 private:
  const std::unique_ptr<ServerConnection> connection_;
  const double link_;
  int measured_pushes_ = 0;  // that come
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_SLOW_LINK_H_
