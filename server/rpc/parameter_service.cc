#include "server/rpc/parameter_service.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/wire/messages.h"
#include "common/wire/status.h"
#include "server/rpc/access/observer.h"
#include "server/rpc/access/observer_pulls.h"
#include "server/rpc/access/session_owners.h"
#include "server/rpc/access/token.h"
#include "server/rpc/initialize.h"
#include "server/rpc/join.h"
#include "server/rpc/lane.h"
#include "server/rpc/pull.h"
#include "server/rpc/push.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

// Refuses a streaming call before it begins.
template <typename Reactor>
class RefusedStream final : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& status) { this->Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// The calls that carry tensors get their messages as bytes.
template <typename Base>
using RawTensorCalls = v1::ParameterServer::WithRawCallbackMethod_InitializeParams<
    v1::ParameterServer::WithRawCallbackMethod_PushGradients<
        v1::ParameterServer::WithRawCallbackMethod_PullParams<
            v1::ParameterServer::WithRawCallbackMethod_PushLane<
                v1::ParameterServer::WithRawCallbackMethod_PullLane<Base>>>>>;
using ServiceBase = RawTensorCalls<
    v1::ParameterServer::WithCallbackMethod_Join<v1::ParameterServer::WithCallbackMethod_Heartbeat<
        v1::ParameterServer::WithCallbackMethod_Leave<v1::ParameterServer::Service>>>>;

class GrpcParameterService final : public ServiceBase {
 public:
  GrpcParameterService(std::string token, TransformRegistry transforms, Shard& shard)
      : token_(std::move(token)),
        transforms_(std::move(transforms)),
        shard_(shard),
        memories_(shard.shares_memory()) {}

  grpc::ServerWriteReactor<v1::JoinEvent>* Join(CallbackServerContext* context,
                                                const v1::JoinRequest* request) override {
    absl::Status allowed = Authorize(*context);
    if (allowed.ok()) allowed = CheckMayJoin(*context, *request, shard_);
    if (!allowed.ok()) return new RefusedStream<grpc::ServerWriteReactor<v1::JoinEvent>>(allowed);
    return ServeJoin(*request, context->peer(), owners_, memories_, lanes_, shard_);
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* InitializeParams(CallbackServerContext* context,
                                                              grpc::ByteBuffer* response) override {
    return IfAllowed(*context, [&] { return ServeInitialize(response, transforms_, shard_); });
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* PushGradients(CallbackServerContext* context,
                                                           grpc::ByteBuffer* response) override {
    return IfAllowed(*context, [&] {
      return ServePush(context, response, memories_, lanes_.pushes, transforms_, shard_);
    });
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* PullParams(CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override {
    using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
    const absl::Status allowed = Authorize(*context);
    if (!allowed.ok()) return new Refused(allowed);
    auto permit = CheckMayPull(*context, *request, owners_, observer_pulls_);
    if (!permit.ok()) return new Refused(permit.status());
    return ServePull(*request, context->peer(), *std::move(permit), chunks_, lanes_.pulls, shard_);
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* PushLane(CallbackServerContext* context,
                                                      grpc::ByteBuffer* response) override {
    return IfAllowed(*context, [&] { return ServePushLane(response, lanes_, shard_); });
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* PullLane(CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request) override {
    return IfAllowed(*context, [&] { return ServePullLane(*request, lanes_, shard_); });
  }

  grpc::ServerUnaryReactor* Heartbeat(CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(AnswerHeartbeat(*context, *request, *response)));
    return reactor;
  }

  grpc::ServerUnaryReactor* Leave(CallbackServerContext* context, const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(AnswerLeave(*context, *request, *response)));
    return reactor;
  }

 private:
  static constexpr int kMaxResults = 16;

  absl::Status Authorize(const CallbackServerContext& context) const {
    return CheckToken(context, token_);
  }

  // Returns the reactor that `serve` makes, or one that refuses the caller.
  template <typename Serve>
  auto IfAllowed(const CallbackServerContext& context, Serve serve) const -> decltype(serve()) {
    const absl::Status allowed = Authorize(context);
    if (allowed.ok()) return serve();
    return new RefusedStream<std::remove_pointer_t<decltype(serve())>>(allowed);
  }

  absl::Status AnswerHeartbeat(const CallbackServerContext& context,
                               const v1::HeartbeatRequest& request,
                               v1::HeartbeatResponse& response) {
    absl::Status allowed = Authorize(context);
    if (allowed.ok()) allowed = CheckMayUse(context, SessionId(request.session()), owners_);
    if (!allowed.ok()) return allowed;
    const absl::StatusOr<Step> step = shard_.Heartbeat(SessionId(request.session()));
    if (step.ok()) response.set_step(step->value());
    *response.mutable_time() = ToProto(RealClock().Now());
    return step.status();
  }

  absl::Status AnswerLeave(const CallbackServerContext& context, const v1::LeaveRequest& request,
                           v1::LeaveResponse& response) {
    absl::Status allowed = Authorize(context);
    if (allowed.ok()) allowed = CheckMayUse(context, SessionId(request.session()), owners_);
    if (!allowed.ok()) return allowed;
    if (request.results_size() > kMaxResults) {
      return MakeError(Reason::kBadArgument,
                       absl::StrCat("field results has ", request.results_size(),
                                    " entries, expected at most ", kMaxResults));
    }
    const Results results(request.results().begin(), request.results().end());
    const absl::StatusOr<Step> step = shard_.Leave(SessionId(request.session()), results);
    if (step.ok()) response.set_step(step->value());
    return step.status();
  }

  const std::string token_;
  const TransformRegistry transforms_;
  Shard& shard_;
  SharedMemories memories_;
  Lanes lanes_;
  SessionOwners owners_;
  ObserverPulls observer_pulls_;
  SnapshotChunks chunks_{transforms_, shard_};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcParameterService(std::string token,
                                                        TransformRegistry transforms,
                                                        Shard& shard) {
  return std::make_unique<GrpcParameterService>(std::move(token), std::move(transforms), shard);
}

}  // namespace sluice
