#include "server/rpc/operator/health.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/wire/status.h"
#include "server/rpc/operator/watch_stream.h"
#include "sluice/own/grpc/health/v1/health.grpc.pb.h"

namespace sluice {
namespace {

namespace health = own::grpc::health::v1;

bool IsServed(const std::string& service) {
  return service.empty() || service == "sluice.v1.ParameterServer" ||
         service == "sluice.v1.Inspector" || service == "sluice.v1.Admin";
}

class GrpcHealth final : public health::Health::CallbackService {
 public:
  GrpcHealth(std::function<bool()> drains, OpenWatches& watches)
      : drains_(std::move(drains)), watches_(watches) {}

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
    response->set_status(Status());
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerWriteReactor<health::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext*, const health::HealthCheckRequest* request) override {
    const auto look = [this, served = IsServed(request->service()),
                       last = absl::optional<int>()](health::HealthCheckResponse* message) mutable {
      message->set_status(served ? Status() : health::HealthCheckResponse::SERVICE_UNKNOWN);
      const bool changed = last != message->status();
      last = message->status();
      return changed;
    };
    return new WatchStream<health::HealthCheckResponse>(watches_, kShortestWatchInterval, look);
  }

 private:
  health::HealthCheckResponse::ServingStatus Status() const {
    return drains_() ? health::HealthCheckResponse::NOT_SERVING
                     : health::HealthCheckResponse::SERVING;
  }

  const std::function<bool()> drains_;
  OpenWatches& watches_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGrpcHealth(std::function<bool()> drains, OpenWatches& watches) {
  return std::make_unique<GrpcHealth>(std::move(drains), watches);
}

}  // namespace sluice
