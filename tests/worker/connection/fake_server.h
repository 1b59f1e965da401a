// One of several servers, of which a test decides when and how its calls end.

#ifndef SLUICE_TESTS_WORKER_CONNECTION_FAKE_SERVER_H_
#define SLUICE_TESTS_WORKER_CONNECTION_FAKE_SERVER_H_

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/vectors.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Where a call is.
enum class CallPhase { kSend, kFinish, kRead, kOffer };

// Outlives the connections to it. A test sets its fields before the call that they concern.
class FakeServer {
 public:
  // ---- What it does ----
  absl::Status fault;               // the end of every call that gets to `fails`
  std::set<CallPhase> fails = {};   // fail there
  std::set<CallPhase> blocks = {};  // wait there until they are cancelled, or `go` is notified
  absl::Notification* go = nullptr;
  std::function<void()> on_fault = [] {};  // called when a call has failed
  std::function<void()> on_start = [] {};  // called when a push or a pull of rows starts
  absl::Status reconnect;                  // the result of Reconnect()
  PushOutcome outcome;
  InitializeOutcome initialized = {true, Step(0)};
  Welcome welcome;
  PullHeader header;
  Values parameters;         // what pulls bring
  bool overwritten = false;  // while they are read
  bool has_lanes = false;    // pushes have
  std::function<absl::StatusOr<PulledSlots>()> slots;

  // ---- What it has seen ----
  Values received;  // of the latest push or offer
  int calls_of_send = 0;
  std::vector<size_t> sends;         // the sizes of its parts
  const float* last_sent = nullptr;  // where the last of them lay
  std::vector<uint32_t> attempts;    // of pushes and offers
  std::vector<uint64_t> pulls;       // their numbers
  std::vector<bool> may_lie;         // what ReadWhereTheyLie() said last, for each of them
  std::vector<BatchIs> batches;
  RowGradients rows;           // of the latest push
  std::vector<RowIds> wanted;  // of the latest pull of rows
  PushSummary summary;
  Encoding encoding;
  SessionId session;      // what BeginSession() said
  uint64_t elements = 0;  // likewise
  int joins = 0;
  int reconnects = 0;
  std::atomic<int> open{0};       // pushes, pulls and offers
  std::atomic<int> cancelled{0};  // by Cancel()
};

// What the calls to a FakeServer have in common.
class FakeCall {
 public:
  explicit FakeCall(FakeServer& server) : server_(server) { ++server_.open; }
  ~FakeCall() { --server_.open; }

  void End() {
    ++server_.cancelled;
    absl::MutexLock lock(&mu_);
    ended_ = true;
  }

  // OK, or the error of that phase.
  absl::Status Enter(CallPhase phase) {
    if (server_.fails.count(phase) > 0) {
      server_.on_fault();
      return server_.fault;
    }
    const auto over = [this, waits = server_.blocks.count(phase) > 0] {
      return ended_ || !waits || (server_.go != nullptr && server_.go->HasBeenNotified());
    };
    absl::MutexLock lock(&mu_, absl::Condition(&over));
    return ended_ ? absl::CancelledError("cancelled") : absl::OkStatus();
  }

 private:
  FakeServer& server_;
  absl::Mutex mu_;
  bool ended_ = false;
};

class FakePush final : public OutgoingPush {
 public:
  explicit FakePush(FakeServer& server) : server_(server), call_(server) {}

  bool Send(uint64_t offset, const SharedFloats& part) override {
    ++server_.calls_of_send;
    if (!call_.Enter(CallPhase::kSend).ok()) return false;
    if (part.values.empty()) return true;
    std::copy(part.values.begin(), part.values.end(), server_.received.begin() + offset);
    server_.sends.push_back(part.values.size());
    server_.last_sent = part.values.data();
    return true;
  }
  bool SendEncoded(const EncodedChunk&, uint64_t) override { return false; }
  bool has_lanes() const override { return server_.has_lanes; }
  absl::StatusOr<PushOutcome> Finish(const PushSummary& summary) override {
    server_.summary = summary;
    absl::Status end = call_.Enter(CallPhase::kFinish);
    // What made Send() fail is the result of Finish().
    if (end.ok() && server_.fails.count(CallPhase::kSend) > 0) end = server_.fault;
    if (!end.ok()) return end;
    return server_.outcome;
  }
  void Cancel() override { call_.End(); }
  Transfer transfer() const override {
    const auto bytes = server_.received.size() * sizeof(float);
    return {bytes, absl::Seconds(static_cast<double>(bytes))};
  }

 private:
  FakeServer& server_;
  FakeCall call_;
};

class FakePull final : public PendingPull {
 public:
  explicit FakePull(FakeServer& server) : server_(server), call_(server) {}

  absl::StatusOr<PullHeader> Read(const StripeSpan<float>& to) override {
    const absl::Status entered = call_.Enter(CallPhase::kRead);
    if (!entered.ok()) return entered;
    if (server_.header.not_modified) return server_.header;
    wrote_ = true;
    const float* next = server_.parameters.data();
    to.ForEachPiece(0, server_.parameters.size(), [&next](absl::Span<float> piece) {
      std::copy_n(next, piece.size(), piece.begin());
      next += piece.size();
    });
    if (server_.overwritten) return absl::DeadlineExceededError("overwritten");
    return server_.header;
  }
  void Cancel() override { call_.End(); }
  bool wrote() const override { return wrote_; }
  Transfer transfer() const override {
    const auto bytes = server_.parameters.size() * sizeof(float);
    return {bytes, absl::Seconds(static_cast<double>(bytes))};
  }

 private:
  FakeServer& server_;
  FakeCall call_;
  bool wrote_ = false;
};

class FakeOffer final : public PendingOffer {
 public:
  explicit FakeOffer(FakeServer& server) : server_(server), call_(server) {}

  absl::StatusOr<InitializeOutcome> Send(const StripeSpan<const float>& parameters) override {
    Gather(parameters, 0, parameters.size(), server_.received.data());
    const absl::Status entered = call_.Enter(CallPhase::kOffer);
    if (!entered.ok()) return entered;
    return server_.initialized;
  }
  void Cancel() override { call_.End(); }

 private:
  FakeServer& server_;
  FakeCall call_;
};

class FakeConnection final : public ServerConnection {
 public:
  explicit FakeConnection(FakeServer& server) : server_(server) {}

  absl::StatusOr<Welcome> Join(const JoinRequest&) override {
    ++server_.joins;
    return server_.welcome;
  }
  absl::Status Reconnect() override {
    ++server_.reconnects;
    return server_.reconnect;
  }
  absl::StatusOr<JobEvent> NextEvent(absl::Duration longest) override {
    if (longest < absl::InfiniteDuration()) return absl::DeadlineExceededError("nothing happened");
    return JobEvent();
  }
  void AwaitRetry(absl::Duration) override {}
  std::unique_ptr<PendingOffer> StartOffer(SessionId, uint32_t attempt,
                                           uint64_t elements) override {
    server_.attempts.push_back(attempt);
    server_.received.assign(elements, -1);
    return std::make_unique<FakeOffer>(server_);
  }
  std::unique_ptr<OutgoingPush> StartPush(const PushHeader& header, uint64_t elements,
                                          BatchIs batch, const RowGradients& rows) override {
    server_.on_start();
    server_.rows = rows;
    server_.attempts.push_back(header.attempt);
    server_.batches.push_back(batch);
    server_.received.assign(elements, -1);
    server_.sends.clear();
    return std::make_unique<FakePush>(server_);
  }
  void BeginSession(SessionId session, uint64_t elements,
                    std::shared_ptr<const SharedMemory>) override {
    server_.session = session;
    server_.elements = elements;
  }
  void UsePullEncoding(const Encoding& encoding) override { server_.encoding = encoding; }
  bool stays_on_machine() const override { return true; }
  void ReadWhereTheyLie(bool may) override { may_ = may; }
  std::unique_ptr<PendingPull> StartPull(const PullRequest& request) override {
    server_.pulls.push_back(request.number);
    server_.may_lie.push_back(may_);
    return std::make_unique<FakePull>(server_);
  }
  absl::StatusOr<PulledSlots> PullSlots(SessionId, uint64_t) override { return server_.slots(); }
  bool CanPushPull(uint64_t) const override { return false; }
  absl::StatusOr<PushPullAnswer> PushPull(const PushHeader&, const SharedFloats&,
                                          const PullRequest&, absl::Span<float>) override {
    return absl::UnimplementedError("push and pull are two calls here");
  }
  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows) override {
    server_.on_start();
    server_.pulls.push_back(request.number);
    server_.wanted = rows;
    return std::make_unique<FakePull>(server_);
  }
  absl::Status Report(SessionId, const StepMeasurement&) override { return absl::OkStatus(); }
  absl::Status Leave(SessionId, const Farewell&) override { return absl::OkStatus(); }

 private:
  FakeServer& server_;
  bool may_ = true;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORKER_CONNECTION_FAKE_SERVER_H_
