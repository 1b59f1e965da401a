#include "server/rpc/parameter_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/wire/chunk.h"
#include "common/wire/messages.h"
#include "common/wire/refused_stream.h"
#include "common/wire/status.h"
#include "server/rpc/access/observer.h"
#include "server/rpc/all_gather.h"
#include "server/rpc/constants.h"
#include "server/rpc/initialize.h"
#include "server/rpc/join.h"
#include "server/rpc/lane.h"
#include "server/rpc/operator/watch_stream.h"
#include "server/rpc/pull.h"
#include "server/rpc/pull_rows.h"
#include "server/rpc/push.h"
#include "server/rpc/push_pull.h"
#include "server/rpc/session_resources.h"
#include "server/rpc/slots.h"
#include "server/rpc/state.h"
#include "server/rpc/turns.h"
#include "sluice/v1/parameter_server.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

// All its calls get their messages as bytes.
using Rpc = v1::ParameterServer;
using RawParameterServer = Rpc::WithRawCallbackMethod_InitializeParams<
    Rpc::WithRawCallbackMethod_PushGradients<Rpc::WithRawCallbackMethod_PullParams<
        Rpc::WithRawCallbackMethod_PushPull<Rpc::WithRawCallbackMethod_PullRows<
            Rpc::WithRawCallbackMethod_PushLane<Rpc::WithRawCallbackMethod_PullLane<
                Rpc::WithRawCallbackMethod_Join<Rpc::WithRawCallbackMethod_JoinInParts<
                    Rpc::WithRawCallbackMethod_OfferConstants<
                        Rpc::WithRawCallbackMethod_PullConstants<
                            Rpc::WithRawCallbackMethod_PullState<
                                Rpc::WithRawCallbackMethod_OfferState<
                                    Rpc::WithRawCallbackMethod_Heartbeat<
                                        Rpc::WithRawCallbackMethod_Leave<
                                            Rpc::WithRawCallbackMethod_HoldJob<
                                                Rpc::WithRawCallbackMethod_PullSlots<
                                                    Rpc::WithRawCallbackMethod_AllGather<
                                                        Rpc::Service>>>>>>>>>>>>>>>>>>;

template <typename Request>
absl::StatusOr<Request> Decode(const grpc::ByteBuffer& bytes) {
  Request request;
  if (DecodeMessage(bytes, &request)) return request;
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the request is not a valid ", Request::descriptor()->name()));
}

// The calls of any server: those that carry a stripe. The others are refused.
class GrpcStripeService : public RawParameterServer {
 public:
  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;

  GrpcStripeService(TransformRegistry transforms, std::string first_server, ParameterStore& store)
      : transforms_(std::move(transforms)), first_server_(std::move(first_server)), store_(store) {}

  grpc::ServerReadReactor<Bytes>* InitializeParams(Context* /*context*/, Bytes* response) override {
    return ServeInitialize(response, transforms_, nullptr, nullptr, store_);
  }

  grpc::ServerReadReactor<Bytes>* PushGradients(Context* context, Bytes* response) override {
    return ServePush(context, response, resources_.memories, resources_.lanes.pushes, transforms_,
                     store_);
  }

  grpc::ServerWriteReactor<Bytes>* PullParams(Context* context, const Bytes* request) override {
    const absl::Status allowed = CheckMayPull(*context, *request, resources_.owners);
    if (!allowed.ok()) return new RefusedStream<grpc::ServerWriteReactor<Bytes>>(allowed);
    return ServePull(*context, *request, resources_.pulls, resources_.chunks,
                     resources_.lanes.pulls, resources_.memories, store_);
  }

  grpc::ServerWriteReactor<Bytes>* PullRows(Context* context, const Bytes* request) override {
    const absl::Status allowed = CheckMayPullRows(*context, *request, resources_.owners);
    if (!allowed.ok()) return new RefusedStream<grpc::ServerWriteReactor<Bytes>>(allowed);
    return ServePullRows(*context, *request, resources_.pulls, transforms_, store_);
  }

  grpc::ServerReadReactor<Bytes>* PushLane(Context* /*context*/, Bytes* response) override {
    return ServePushLane(response, resources_.lanes, store_);
  }

  grpc::ServerWriteReactor<Bytes>* PullLane(Context* context, const Bytes* request) override {
    return ServePullLane(*context, *request, resources_.lanes, store_);
  }

  grpc::ServerWriteReactor<Bytes>* Join(Context* /*context*/, const Bytes* /*bytes*/) override {
    return Refuse<grpc::ServerWriteReactor<Bytes>>();
  }
  grpc::ServerBidiReactor<Bytes, Bytes>* JoinInParts(Context* /*context*/) override {
    return Refuse<grpc::ServerBidiReactor<Bytes, Bytes>>();
  }
  grpc::ServerReadReactor<Bytes>* OfferConstants(Context* /*context*/,
                                                 Bytes* /*response*/) override {
    return Refuse<grpc::ServerReadReactor<Bytes>>();
  }
  grpc::ServerWriteReactor<Bytes>* PullConstants(Context* /*context*/,
                                                 const Bytes* /*request*/) override {
    return Refuse<grpc::ServerWriteReactor<Bytes>>();
  }
  grpc::ServerWriteReactor<Bytes>* PullState(Context* /*context*/,
                                             const Bytes* /*request*/) override {
    return Refuse<grpc::ServerWriteReactor<Bytes>>();
  }
  grpc::ServerReadReactor<Bytes>* OfferState(Context* /*context*/, Bytes* /*response*/) override {
    return Refuse<grpc::ServerReadReactor<Bytes>>();
  }
  grpc::ServerUnaryReactor* Heartbeat(Context* /*context*/, const Bytes* /*request*/,
                                      Bytes* /*response*/) override {
    return Refuse<grpc::ServerUnaryReactor>();
  }
  grpc::ServerWriteReactor<Bytes>* HoldJob(Context* /*context*/,
                                           const Bytes* /*request*/) override {
    return Refuse<grpc::ServerWriteReactor<Bytes>>();
  }
  grpc::ServerWriteReactor<Bytes>* PullSlots(Context* /*context*/,
                                             const Bytes* /*request*/) override {
    return Refuse<grpc::ServerWriteReactor<Bytes>>();
  }
  grpc::ServerUnaryReactor* AllGather(Context* /*context*/, const Bytes* /*request*/,
                                      Bytes* /*response*/) override {
    return Refuse<grpc::ServerUnaryReactor>();
  }
  grpc::ServerReadReactor<Bytes>* PushPull(Context* /*context*/, Bytes* /*response*/) override {
    return Refuse<grpc::ServerReadReactor<Bytes>>();
  }
  grpc::ServerUnaryReactor* Leave(Context* /*context*/, const Bytes* /*request*/,
                                  Bytes* /*response*/) override {
    return Refuse<grpc::ServerUnaryReactor>();
  }

  SessionResources& resources() { return resources_; }
  const TransformRegistry& transforms() const { return transforms_; }

 private:
  template <typename Reactor>
  Reactor* Refuse() const {
    return new RefusedStream<Reactor>(
        MakeError(Reason::kNotFirstServer,
                  absl::StrCat("this server holds a stripe only; call the first server, at ",
                               first_server_)));
  }

  const TransformRegistry transforms_;
  const std::string first_server_;
  ParameterStore& store_;
  SessionResources resources_{transforms_, store_};
};

// Those of a server that is not the leader.
class GrpcReplicaService final : public GrpcStripeService {
 public:
  GrpcReplicaService(TransformRegistry transforms, std::string first_server, Replica& replica)
      : GrpcStripeService(std::move(transforms), std::move(first_server), replica),
        replica_(replica) {}

  grpc::ServerWriteReactor<Bytes>* PullSlots(Context* context, const Bytes* bytes) override {
    const auto request = Decode<v1::PullSlotsRequest>(*bytes);
    if (!request.ok()) return new RefusedStream<grpc::ServerWriteReactor<Bytes>>(request.status());
    return ServePullSlots(*context, slots_, replica_,
                          [this, session = SessionId(request->session())](StripeCopyCallback done) {
                            replica_.CopyStripe(session, std::move(done));
                          });
  }

 private:
  Replica& replica_;
  SlotCopies slots_;
};

// Those of the leader, or of the only server.
class GrpcParameterService final : public GrpcStripeService {
 public:
  GrpcParameterService(const ModelServiceOptions& options, const ModelParts& model)
      : GrpcStripeService(options.transforms, "", model.shard->store()),
        join_time_(options.join_time),
        named_(options.named),
        watches_(*options.watches),
        shard_(*model.shard) {
    resources().servers = options.servers;
    resources().constants = model.constants;
    if (model.constants == nullptr) {
      resources().constants = std::make_shared<ConstantStore>("", "");
    }
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Join(CallbackServerContext* context,
                                                   const grpc::ByteBuffer* bytes) override {
    using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
    const auto request = Decode<v1::JoinRequest>(*bytes);
    const absl::Status allowed =
        request.ok() ? CheckMayJoin(*context, *request, shard_) : request.status();
    if (!allowed.ok()) return new Refused(allowed);
    return ServeJoin(*request, context->peer(), resources(), shard_);
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* JoinInParts(
      CallbackServerContext* context) override {
    const auto may_join = [this, context](const v1::JoinRequest& request) {
      return CheckMayJoin(*context, request, shard_);
    };
    Turns& turns = MayTrain(*context) ? workers_turns_ : observers_turns_;
    return ServeJoinInParts({context->peer(), may_join, turns, join_time_}, resources(), shard_);
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* InitializeParams(CallbackServerContext* /*context*/,
                                                              grpc::ByteBuffer* response) override {
    const auto ready = [this] { return CheckHasConstants(*resources().constants, shard_); };
    return ServeInitialize(response, transforms(), &resources().offers, ready, shard_.store());
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* OfferConstants(CallbackServerContext* /*context*/,
                                                            grpc::ByteBuffer* response) override {
    return ServeOfferConstants(response, resources().constant_offers, *resources().constants,
                               shard_);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* PullConstants(
      CallbackServerContext* context, const grpc::ByteBuffer* bytes) override {
    using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
    const auto request = Decode<v1::PullConstantsRequest>(*bytes);
    if (!request.ok()) return new Refused(request.status());
    const SessionId session(request->session());
    const absl::Status allowed = CheckMayUse(*context, session, resources().owners);
    if (!allowed.ok()) return new Refused(allowed);
    return ServePullConstants(session, *resources().constants, shard_);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* PullState(CallbackServerContext* /*context*/,
                                                        const grpc::ByteBuffer* bytes) override {
    using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
    const auto request = Decode<v1::PullStateRequest>(*bytes);
    if (!request.ok()) return new Refused(request.status());
    return ServePullState(*request, shard_);
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* OfferState(CallbackServerContext* /*context*/,
                                                        grpc::ByteBuffer* response) override {
    return ServeOfferState(response, shard_);
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* PushPull(CallbackServerContext* context,
                                                      grpc::ByteBuffer* response) override {
    return ServePushPull(*context, response, resources().pulls, resources().chunks,
                         resources().memories, transforms(), shard_.store());
  }

  grpc::ServerUnaryReactor* Heartbeat(CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(AnswerHeartbeat(*context, *request, *response)));
    return reactor;
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* HoldJob(CallbackServerContext* /*context*/,
                                                      const grpc::ByteBuffer* bytes) override {
    using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
    const auto request = Decode<v1::HoldJobRequest>(*bytes);
    if (!request.ok()) return new Refused(request.status());
    if (named_ == nullptr) return new Refused(MakeError(Reason::kBadArgument, kHasOneModel));
    v1::HoldJobResponse response;
    response.set_job_id(shard_.Describe().job_id);
    return new WatchStream<grpc::ByteBuffer>(
        watches_, absl::Hours(1),
        [held = named_->HoldJob(), answer = EncodeMessage(response),
         told = false](grpc::ByteBuffer* message) mutable {
          *message = answer;
          return !std::exchange(told, true);
        });
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* PullSlots(CallbackServerContext* context,
                                                        const grpc::ByteBuffer* bytes) override {
    using Refused = RefusedStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
    const auto request = Decode<v1::PullSlotsRequest>(*bytes);
    if (!request.ok()) return new Refused(request.status());
    const absl::Status open = shard_.Heartbeat(SessionId(request->session())).status();
    if (!open.ok()) return new Refused(open);
    return ServePullSlots(*context, slots_, shard_.store(), [this](StripeCopyCallback done) {
      shard_.durability().CopyStripe(std::move(done));
    });
  }

  grpc::ServerUnaryReactor* AllGather(CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                      grpc::ByteBuffer* response) override {
    const auto request = Decode<v1::AllGatherRequest>(*bytes);
    if (request.ok()) return ServeAllGather(*request, response, gatherings_);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(request.status()));
    return reactor;
  }

  grpc::ServerUnaryReactor* Leave(CallbackServerContext* context, const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::Status left = AnswerLeave(*context, *request, *response);
    if (!left.ok()) {
      reactor->Finish(ToGrpcStatus(left));
      return reactor;
    }
    // The last worker may go when the server would know, also if it were started again.
    shard_.durability().WhenEndIsSaved(
        [reactor](const absl::Status& saved) { reactor->Finish(ToGrpcStatus(saved)); });
    return reactor;
  }

 private:
  static absl::optional<StepMeasurement> MeasurementOf(const v1::HeartbeatRequest& request) {
    if (!request.has_measurement()) return absl::nullopt;
    const v1::StepMeasurement& measurement = request.measurement();
    return StepMeasurement{Step(measurement.step()),
                           {measurement.results().begin(), measurement.results().end()}};
  }

  absl::Status AnswerHeartbeat(const CallbackServerContext& context, const grpc::ByteBuffer& bytes,
                               grpc::ByteBuffer& answer) {
    const auto request = Decode<v1::HeartbeatRequest>(bytes);
    if (!request.ok()) return request.status();
    const SessionId session(request->session());
    absl::Status allowed = CheckMayUse(context, session, resources().owners);
    if (allowed.ok()) allowed = CheckMayReport(context, *request);
    if (!allowed.ok()) return allowed;
    const absl::StatusOr<Step> step = shard_.Heartbeat(session, MeasurementOf(*request));
    if (!step.ok()) return step.status();
    v1::HeartbeatResponse response;
    response.set_step(step->value());
    *response.mutable_time() = ToProto(RealClock().Now());
    answer = EncodeMessage(response);
    return absl::OkStatus();
  }

  absl::Status AnswerLeave(const CallbackServerContext& context, const grpc::ByteBuffer& bytes,
                           grpc::ByteBuffer& answer) {
    const auto request = Decode<v1::LeaveRequest>(bytes);
    if (!request.ok()) return request.status();
    const SessionId session(request->session());
    absl::Status allowed = CheckMayUse(context, session, resources().owners);
    if (allowed.ok()) allowed = CheckMayReport(context, *request);
    if (!allowed.ok()) return allowed;
    const Farewell farewell = {{request->results().begin(), request->results().end()},
                               request->failure()};
    const absl::StatusOr<Step> step = shard_.Leave(session, farewell);
    if (!step.ok()) return step.status();
    v1::LeaveResponse response;
    response.set_step(step->value());
    answer = EncodeMessage(response);
    return absl::OkStatus();
  }

  const absl::Duration join_time_;  // in which the parts of a request to join must come
  ModelFinder* const named_;
  OpenWatches& watches_;
  Shard& shard_;
  Turns workers_turns_{kJoinsOfWorkers};
  Turns observers_turns_{kJoinsOfObservers};
  SlotCopies slots_;
  Gatherings gatherings_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcParameterService(const ModelServiceOptions& options,
                                                        const ModelParts& model) {
  return std::make_unique<GrpcParameterService>(options, model);
}

std::unique_ptr<grpc::Service> MakeGrpcStripeService(TransformRegistry transforms,
                                                     std::string first_server, Replica& replica) {
  auto service =
      std::make_unique<GrpcReplicaService>(std::move(transforms), std::move(first_server), replica);
  SessionResources* const resources = &service->resources();
  // An observer joins at the leader, so no connection here is the one of its Join.
  replica.Listen({[resources](const OpenSession& open) {
                    resources->Begin(open.session, open.role, SessionOwners::kAnyConnection,
                                     open.memory, "");
                  },
                  [resources](SessionId session) { resources->End(session); }});
  return service;
}

}  // namespace sluice
