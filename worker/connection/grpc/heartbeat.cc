#include "worker/connection/grpc/heartbeat.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/thread_name.h"
#include "common/wire/deadline.h"
#include "common/wire/settings.h"
#include "common/wire/status.h"
#include "worker/connection/grpc/call.h"

namespace sluice {
namespace {

constexpr int kBeatsPerLease = 3;
constexpr absl::Duration kShortestInterval = absl::Milliseconds(20);
// While a batch is computed, no other thread reads from sockets. gRPC polls all sockets of the
// process together, so during a heartbeat the pings of all servers are answered, also those on
// lanes and in a push that is under way. A server waits for 10 s (server/rpc/server.cc), a worker
// as long for the answer to its own (channel.cc). This is half of it.
constexpr absl::Duration kLongestInterval = absl::Seconds(5);
constexpr absl::Duration kComparisonTimeout = absl::Seconds(1);
constexpr int kComparisons = 8;

// Sends one, and tells `trace`, unless it is null, the server's clock.
grpc::Status Send(v1::ParameterServer::Stub& stub, grpc::ClientContext& context,
                  const v1::HeartbeatRequest& request, Trace* trace) {
  const absl::Time sent = trace == nullptr ? absl::Time() : trace->Now();
  v1::HeartbeatResponse response;
  const grpc::Status status = stub.Heartbeat(&context, request, &response);
  if (trace != nullptr && status.ok()) {
    trace->NoteRoundTrip(sent, FromProto(response.time()), trace->Now());
  }
  return status;
}

}  // namespace

absl::Duration HeartbeatInterval(absl::Duration lease) {
  return std::clamp(lease / kBeatsPerLease, kShortestInterval, kLongestInterval);
}

absl::Duration PauseAfterHeartbeat(absl::Duration took, absl::Duration interval) {
  return std::max(interval - took, absl::ZeroDuration());
}

Heartbeat::Heartbeat(v1::ParameterServer::Stub& stub, SessionId session, absl::Duration lease,
                     const CallMetadata& metadata, Trace* trace)
    : stub_(stub), interval_(HeartbeatInterval(lease)), metadata_(metadata), trace_(trace) {
  request_.set_session(session.value());
  thread_ = std::thread([this] { Run(); });
}

Heartbeat::~Heartbeat() {
  stop_.Raise();
  {
    absl::MutexLock lock(&mu_);
    if (call_ != nullptr) call_->TryCancel();
  }
  thread_.join();
}

void Heartbeat::Run() {
  NameThisThread("heartbeat");
  absl::Duration pause = interval_;
  while (!stop_.WaitFor(pause)) {
    const absl::Time begun = RealClock().Now();
    if (!Beat()) return;
    pause = PauseAfterHeartbeat(RealClock().Now() - begun, interval_);
  }
}

// Returns whether another one should follow.
bool Heartbeat::Beat() {
  grpc::ClientContext context;
  Prepare(context, interval_, metadata_);
  if (!BeginCall(context)) return false;
  const grpc::Status status = Send(stub_, context, request_, trace_);
  EndCall();
  return ReasonOf(FromGrpcStatus(status)) != Reason::kUnknownSession;
}

bool Heartbeat::BeginCall(grpc::ClientContext& context) {
  absl::MutexLock lock(&mu_);
  if (stop_.WaitFor(absl::ZeroDuration())) return false;
  call_ = &context;
  return true;
}

void Heartbeat::EndCall() {
  absl::MutexLock lock(&mu_);
  call_ = nullptr;
}

void CompareClocks(v1::ParameterServer::Stub& stub, SessionId session, const CallMetadata& metadata,
                   Trace& trace) {
  v1::HeartbeatRequest request;
  request.set_session(session.value());
  for (int i = 0; i < kComparisons; ++i) {
    grpc::ClientContext context;
    Prepare(context, kComparisonTimeout, metadata);
    if (!Send(stub, context, request, &trace).ok()) return;
  }
}

}  // namespace sluice
