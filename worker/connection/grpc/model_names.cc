#include "worker/connection/grpc/model_names.h"

#include <grpcpp/grpcpp.h>

#include "common/wire/settings.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/dial.h"

namespace sluice {

absl::StatusOr<std::vector<std::string>> ModelNamesOverGrpc(const GrpcConnectionOptions& options) {
  const auto channel = DialChannel(options);
  if (!channel.ok()) return channel.status();
  grpc::ClientContext context;
  Prepare(context, kCallTimeout, {options.token});
  v1::ListModelsResponse answer;
  const absl::Status end =
      EndOf(v1::Inspector::NewStub(channel->get())->ListModels(&context, {}, &answer));
  if (!end.ok()) return end;
  return std::vector<std::string>(answer.names().begin(), answer.names().end());
}

}  // namespace sluice
