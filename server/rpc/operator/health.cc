#include "server/rpc/operator/health.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/status.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace sluice {
namespace {

namespace health = grpc::health::v1;

bool IsServed(const std::string& service) {
  return service.empty() || service == "sluice.v1.ParameterServer" ||
         service == "sluice.v1.Inspector" || service == "sluice.v1.Admin";
}

class GrpcHealth final : public health::Health::CallbackService {
 public:
  explicit GrpcHealth(const Shard& shard) : shard_(shard) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const health::HealthCheckRequest* request,
                                  health::HealthCheckResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    if (!IsServed(request->service())) {
      reactor->Finish(ToGrpcStatus(MakeError(
          Reason::kNotFound,
          absl::StrCat("no service \"", Shown(request->service()), "\" is served here"))));
      return reactor;
    }
    const bool draining = shard_.Describe().phase == Phase::kDraining;
    response->set_status(draining ? health::HealthCheckResponse::NOT_SERVING
                                  : health::HealthCheckResponse::SERVING);
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const Shard& shard_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcHealth(const Shard& shard) {
  return std::make_unique<GrpcHealth>(shard);
}

}  // namespace sluice
