#include "server/rpc/stripe_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/refused_stream.h"
#include "server/rpc/access/observer.h"
#include "server/rpc/initialize.h"
#include "server/rpc/lane.h"
#include "server/rpc/pull.h"
#include "server/rpc/pull_rows.h"
#include "server/rpc/push.h"
#include "server/rpc/raw_calls.h"
#include "server/rpc/session_resources.h"

namespace sluice {
namespace {

class GrpcStripeService final : public RawParameterServer {
 public:
  GrpcStripeService(TransformRegistry transforms, std::string first_server, HeldStripe& stripe)
      : transforms_(std::move(transforms)),
        first_server_(std::move(first_server)),
        stripe_(stripe) {
    // An observer joins at the first server, so no connection here is the one of its Join.
    stripe.Listen({[this](const OpenSession& open) {
                     resources_.Begin(open.session, open.role, SessionOwners::kAnyConnection,
                                      open.memory, "");
                   },
                   [this](SessionId session) { resources_.End(session); }});
  }

  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;

  grpc::ServerReadReactor<Bytes>* InitializeParams(Context* /*context*/, Bytes* response) override {
    return ServeInitialize(response, transforms_, nullptr, nullptr, stripe_);
  }

  grpc::ServerReadReactor<Bytes>* PushGradients(Context* context, Bytes* response) override {
    return ServePush(context, response, resources_.memories, resources_.lanes.pushes, transforms_,
                     stripe_);
  }

  grpc::ServerWriteReactor<Bytes>* PullParams(Context* context, const Bytes* request) override {
    const absl::Status allowed = CheckMayPull(*context, *request, resources_.owners);
    if (!allowed.ok()) return new RefusedStream<grpc::ServerWriteReactor<Bytes>>(allowed);
    return ServePull(*context, *request, resources_.pulls, resources_.chunks,
                     resources_.lanes.pulls, resources_.memories, stripe_);
  }

  grpc::ServerWriteReactor<Bytes>* PullRows(Context* context, const Bytes* request) override {
    const absl::Status allowed = CheckMayPullRows(*context, *request, resources_.owners);
    if (!allowed.ok()) return new RefusedStream<grpc::ServerWriteReactor<Bytes>>(allowed);
    return ServePullRows(*context, *request, resources_.pulls, transforms_, stripe_);
  }

  grpc::ServerReadReactor<Bytes>* PushLane(Context* /*context*/, Bytes* response) override {
    return ServePushLane(response, resources_.lanes, stripe_);
  }

  grpc::ServerWriteReactor<Bytes>* PullLane(Context* context, const Bytes* request) override {
    return ServePullLane(*context, *request, resources_.lanes, stripe_);
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
  grpc::ServerUnaryReactor* Heartbeat(Context* /*context*/, const Bytes* /*request*/,
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
  HeldStripe& stripe_;
  SessionResources resources_{transforms_, stripe_};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcStripeService(TransformRegistry transforms,
                                                     std::string first_server, HeldStripe& stripe) {
  return std::make_unique<GrpcStripeService>(std::move(transforms), std::move(first_server),
                                             stripe);
}

}  // namespace sluice
