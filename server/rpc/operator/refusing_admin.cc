#include "server/rpc/operator/refusing_admin.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/caller.h"
#include "common/wire/refused_stream.h"
#include "common/wire/status.h"
#include "sluice/v1/admin.grpc.pb.h"

namespace sluice {
namespace {

using grpc::CallbackServerContext;

class GrpcRefusingAdmin final : public v1::Admin::CallbackService {
 public:
  GrpcRefusingAdmin(std::string token, std::string first_server)
      : token_(std::move(token)), first_server_(std::move(first_server)) {}

  grpc::ServerUnaryReactor* SetPolicy(CallbackServerContext* context, const v1::SetPolicyRequest*,
                                      v1::SetPolicyResponse*) override {
    return Refuse(context);
  }
  grpc::ServerUnaryReactor* SetLearningRate(CallbackServerContext* context,
                                            const v1::SetLearningRateRequest*,
                                            v1::SetLearningRateResponse*) override {
    return Refuse(context);
  }
  grpc::ServerUnaryReactor* EvictWorker(CallbackServerContext* context,
                                        const v1::EvictWorkerRequest*,
                                        v1::EvictWorkerResponse*) override {
    return Refuse(context);
  }
  grpc::ServerUnaryReactor* SaveCheckpoint(CallbackServerContext* context,
                                           const v1::SaveCheckpointRequest*,
                                           v1::SaveCheckpointResponse*) override {
    return Refuse(context);
  }
  grpc::ServerUnaryReactor* Drain(CallbackServerContext* context, const v1::DrainRequest*,
                                  v1::DrainResponse*) override {
    return Refuse(context);
  }
  grpc::ServerWriteReactor<v1::ReadLogsResponse>* ReadLogs(CallbackServerContext* context,
                                                           const v1::ReadLogsRequest*) override {
    return new RefusedStream<grpc::ServerWriteReactor<v1::ReadLogsResponse>>(Why(*context));
  }
  grpc::ServerWriteReactor<v1::CollectTraceResponse>* CollectTrace(
      CallbackServerContext* context, const v1::CollectTraceRequest*) override {
    return new RefusedStream<grpc::ServerWriteReactor<v1::CollectTraceResponse>>(Why(*context));
  }

 private:
  absl::Status Why(const CallbackServerContext& context) const {
    const absl::Status allowed = CheckToken(context, token_);
    if (!allowed.ok()) return allowed;
    return MakeError(
        Reason::kNotFirstServer,
        absl::StrCat("this server is not the first one of its job, which decides; call "
                     "Admin there, at ",
                     first_server_));
  }
  grpc::ServerUnaryReactor* Refuse(CallbackServerContext* context) const {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(Why(*context)));
    return reactor;
  }

  const std::string token_;
  const std::string first_server_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcRefusingAdmin(std::string token, std::string first_server) {
  return std::make_unique<GrpcRefusingAdmin>(std::move(token), std::move(first_server));
}

}  // namespace sluice
