#include "tests/testing/process/timed_calls.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/protocol/protocol_types.h"
#include "common/wire/deadline.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

constexpr absl::Duration kLongestCall = absl::Seconds(60);

std::shared_ptr<grpc::Channel> OwnConnection(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// A session that lasts as long as this object.
class ObserverSession {
 public:
  ObserverSession(v1::ParameterServer::Stub& stub, const std::string& name, uint32_t elements) {
    JoinRequest request;
    request.worker = name;
    request.role = SessionRole::kObserver;
    request.process_nonce = ProcessNonce(RandomNonce().value());
    request.layout = ParametersOnly(elements);
    SgdOptions sgd;
    sgd.learning_rate = 1;
    request.optimizer.options = sgd;
    context_.set_deadline(DeadlineAfter(absl::InfiniteDuration()));
    events_ = stub.Join(&context_, ToProto(request));
  }

  ~ObserverSession() {
    context_.TryCancel();
    for (v1::JoinEvent event; events_->Read(&event);) {
    }
    events_->Finish();
  }

  // The id of the session; called once.
  absl::StatusOr<uint64_t> Await() {
    v1::JoinEvent event;
    if (events_->Read(&event)) return event.welcome().session();
    return FromGrpcStatus(events_->Finish());
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::JoinEvent>> events_;
};

}  // namespace

absl::StatusOr<TimedCall> HeartbeatCalls(const std::string& address, uint32_t elements) {
  const std::shared_ptr<v1::ParameterServer::Stub> stub =
      v1::ParameterServer::NewStub(OwnConnection(address));
  const auto session = std::make_shared<ObserverSession>(*stub, "heartbeats", elements);
  const auto id = session->Await();
  if (!id.ok()) return id.status();
  return TimedCall([stub, session, id = *id] {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(kLongestCall));
    v1::HeartbeatRequest request;
    request.set_session(id);
    v1::HeartbeatResponse response;
    return FromGrpcStatus(stub->Heartbeat(&context, request, &response));
  });
}

TimedCall JoinCalls(const std::string& address, uint32_t elements) {
  const std::shared_ptr<v1::ParameterServer::Stub> stub =
      v1::ParameterServer::NewStub(OwnConnection(address));
  return [stub, elements] { return ObserverSession(*stub, "joins", elements).Await().status(); };
}

TimedCall ServerStateCalls(const std::string& address) {
  const std::shared_ptr<v1::Inspector::Stub> stub = v1::Inspector::NewStub(OwnConnection(address));
  return [stub] {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(kLongestCall));
    v1::ServerState state;
    return FromGrpcStatus(stub->GetServerState(&context, {}, &state));
  };
}

TimedCall StatisticsCalls(const std::string& address) {
  const std::shared_ptr<v1::Inspector::Stub> stub = v1::Inspector::NewStub(OwnConnection(address));
  return [stub] {
    grpc::ClientContext context;
    context.set_deadline(DeadlineAfter(kLongestCall));
    v1::GetParameterRequest request;
    request.set_name("w");
    v1::GetParameterResponse response;
    return FromGrpcStatus(stub->GetParameter(&context, request, &response));
  };
}

TimedCalls::TimedCalls(TimedCall call, absl::Duration pause)
    : thread_([this, call = std::move(call), pause] { Work(call, pause); }) {}

TimedCalls::~TimedCalls() { End().IgnoreError(); }

absl::StatusOr<std::vector<double>> TimedCalls::End() {
  end_.Raise();
  if (thread_.joinable()) thread_.join();
  if (!error_.ok()) return error_;
  return seconds_;
}

void TimedCalls::Work(const TimedCall& call, absl::Duration pause) {
  while (!end_.WaitFor(pause)) {
    const absl::Time began = RealClock().Now();
    error_ = call();
    if (!error_.ok()) return;
    seconds_.push_back(absl::ToDoubleSeconds(RealClock().Now() - began));
  }
}

}  // namespace sluice
