#include "server/grpc_admin.h"

#include <utility>

#include "common/error.h"
#include "common/wire.h"
#include "common/wire_status.h"
#include "server/grpc_token.h"
#include "sluice/v1/admin.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

class GrpcAdmin final : public v1::Admin::CallbackService {
 public:
  GrpcAdmin(std::string token, Shard& shard) : token_(std::move(token)), shard_(shard) {}

  grpc::ServerUnaryReactor* SetPolicy(CallbackServerContext* context,
                                      const v1::SetPolicyRequest* request,
                                      v1::SetPolicyResponse* response) override {
    return Reply(context, [&]() -> absl::Status {
      const auto consistency = FromProto(request->consistency());
      if (!consistency.ok()) return consistency.status();
      const auto step = shard_.SetConsistency(*consistency);
      if (step.ok()) response->set_step(step->value());
      return step.status();
    });
  }

  grpc::ServerUnaryReactor* SetLearningRate(CallbackServerContext* context,
                                            const v1::SetLearningRateRequest* request,
                                            v1::SetLearningRateResponse* response) override {
    return Reply(context, [&] {
      const auto step = shard_.SetLearningRate(request->learning_rate());
      if (step.ok()) response->set_step(step->value());
      return step.status();
    });
  }

  grpc::ServerUnaryReactor* EvictWorker(CallbackServerContext* context,
                                        const v1::EvictWorkerRequest* request,
                                        v1::EvictWorkerResponse*) override {
    return Reply(context, [&] { return shard_.Evict(request->worker()); });
  }

  grpc::ServerUnaryReactor* Drain(CallbackServerContext* context, const v1::DrainRequest*,
                                  v1::DrainResponse* response) override {
    return Reply(context, [&] {
      shard_.Drain();
      response->set_step(shard_.Describe().step.value());
      return absl::OkStatus();
    });
  }

 private:
  template <typename Act>
  grpc::ServerUnaryReactor* Reply(CallbackServerContext* context, Act act) const {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::Status allowed = CheckToken(*context, token_);
    reactor->Finish(ToGrpcStatus(allowed.ok() ? act() : allowed));
    return reactor;
  }

  const std::string token_;
  Shard& shard_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcAdmin(std::string token, Shard& shard) {
  return std::make_unique<GrpcAdmin>(std::move(token), shard);
}

}  // namespace sluice
