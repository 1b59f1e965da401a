#include "worker/connection/grpc/all_gather.h"

#include <grpcpp/grpcpp.h>

#include "common/wire/settings.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/call.h"
#include "worker/connection/grpc/dial.h"

namespace sluice {

absl::StatusOr<std::vector<std::string>> AllGatherOverGrpc(const GrpcConnectionOptions& options,
                                                           const Gathering& gathering,
                                                           absl::Duration wait) {
  const auto channel = DialChannel(options);
  if (!channel.ok()) return channel.status();
  v1::AllGatherRequest request;
  request.set_number(gathering.number);
  request.set_rank(gathering.rank);
  request.set_size(gathering.size);
  request.set_process_nonce(gathering.nonce.value());
  request.set_data(gathering.data.data(), gathering.data.size());
  *request.mutable_wait() = ToProto(wait);
  grpc::ClientContext context;
  Prepare(context, wait + kCallTimeout, {options.token});
  v1::AllGatherResponse answer;
  const absl::Status end =
      EndOf(v1::ParameterServer::NewStub(channel->get())->AllGather(&context, request, &answer));
  if (!end.ok()) return end;
  if (static_cast<uint32_t>(answer.data_size()) != gathering.size) {
    return UnexpectedMessage("AllGather", "data of each rank");
  }
  return std::vector<std::string>(answer.data().begin(), answer.data().end());
}

}  // namespace sluice
