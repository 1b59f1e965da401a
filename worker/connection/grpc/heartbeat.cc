#include "worker/connection/grpc/heartbeat.h"

#include <grpcpp/alarm.h>

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/error.h"
#include "common/wire/deadline.h"
#include "common/wire/settings.h"
#include "common/wire/status.h"
#include "worker/connection/grpc/call.h"

namespace sluice {
namespace {

constexpr int kBeatsPerLease = 3;
constexpr absl::Duration kShortestInterval = absl::Milliseconds(20);
constexpr absl::Duration kComparisonTimeout = absl::Seconds(1);
constexpr int kComparisons = 8;

}  // namespace

absl::Duration HeartbeatInterval(absl::Duration lease) {
  return std::max(lease / kBeatsPerLease, kShortestInterval);
}

// Alternates between an alarm and a call; the call's callback owns it. Stop() waits for both.
class Heartbeat::Beat : public std::enable_shared_from_this<Beat> {
 public:
  Beat(v1::ParameterServer::Stub& stub, SessionId session, absl::Duration interval,
       const std::string& token, Trace* trace)
      : stub_(stub), interval_(interval), token_(token), trace_(trace) {
    request_.set_session(session.value());
  }

  void Rest() {
    absl::MutexLock lock(&mu_);
    resting_ = !stopped_;
    if (stopped_) return;
    alarm_ = std::make_unique<grpc::Alarm>();  // an alarm cannot be set again in its callback
    // The alarm owns its callback, so the callback must not own the alarm's owner.
    alarm_->Set(DeadlineAfter(interval_), [weak = weak_from_this()](bool) {
      if (const std::shared_ptr<Beat> self = weak.lock()) self->Call();
    });
  }

  void Stop() {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
    if (context_ != nullptr) context_->TryCancel();
    mu_.Await(absl::Condition(
        +[](Beat* beat) ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return !beat->resting_ && beat->context_ == nullptr;
        },
        this));
  }

 private:
  void Call() {
    absl::MutexLock lock(&mu_);
    resting_ = false;
    if (stopped_) return;
    context_ = std::make_unique<grpc::ClientContext>();
    Prepare(*context_, interval_, token_);
    if (trace_ != nullptr) sent_ = trace_->Now();
    stub_.async()->Heartbeat(
        context_.get(), &request_, &response_,
        [self = shared_from_this()](const grpc::Status& status) { self->Answered(status); });
  }

  void Answered(const grpc::Status& status) {
    {
      absl::MutexLock lock(&mu_);
      if (trace_ != nullptr && status.ok()) {
        trace_->NoteRoundTrip(sent_, FromProto(response_.time()), trace_->Now());
      }
      context_ = nullptr;
      stopped_ = stopped_ || ReasonOf(FromGrpcStatus(status)) == Reason::kUnknownSession;
      resting_ = !stopped_;  // so that Stop() waits for the next alarm
    }
    Rest();
  }

  v1::ParameterServer::Stub& stub_;
  const absl::Duration interval_;
  const std::string token_;
  Trace* const trace_;
  v1::HeartbeatRequest request_;
  v1::HeartbeatResponse response_;

  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool resting_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time sent_ ABSL_GUARDED_BY(mu_);  // for the trace: when the latest call was sent
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mu_);  // null between two calls
};

Heartbeat::Heartbeat(v1::ParameterServer::Stub& stub, SessionId session, absl::Duration lease,
                     const std::string& token, Trace* trace)
    : beat_(std::make_shared<Beat>(stub, session, HeartbeatInterval(lease), token, trace)) {
  beat_->Rest();
}

Heartbeat::~Heartbeat() { beat_->Stop(); }

void CompareClocks(v1::ParameterServer::Stub& stub, SessionId session, const std::string& token,
                   Trace& trace) {
  v1::HeartbeatRequest request;
  request.set_session(session.value());
  for (int i = 0; i < kComparisons; ++i) {
    grpc::ClientContext context;
    Prepare(context, kComparisonTimeout, token);
    v1::HeartbeatResponse response;
    const absl::Time sent = trace.Now();
    const grpc::Status status = stub.Heartbeat(&context, request, &response);
    if (!status.ok()) return;
    trace.NoteRoundTrip(sent, FromProto(response.time()), trace.Now());
  }
}

}  // namespace sluice
