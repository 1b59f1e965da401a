#include "tools/bench/bare/bare_client.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/wire/deadline.h"
#include "common/wire/status.h"

namespace sluice::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(120);
constexpr char kEcho[] = "/sluice.v1.ParameterServer/Heartbeat";
constexpr char kLeave[] = "/sluice.v1.ParameterServer/Leave";

// Not one connection for all clients of a process.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

grpc::ByteBuffer BytesOf(absl::Span<const float> floats) {
  const grpc::Slice slice(floats.data(), floats.size() * sizeof(float));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

BareClient::BareClient(const std::string& address, absl::Span<const float> floats)
    : request_(BytesOf(floats)), stub_(ChannelTo(address)) {}

absl::Status BareClient::Echo() {
  grpc::ByteBuffer response;
  const absl::Status called = Call(kEcho, &response);
  if (!called.ok() || response.Length() == request_.Length()) return called;
  return absl::DataLossError(absl::StrCat("the server answered ", response.Length(),
                                          " bytes, expected ", request_.Length()));
}

absl::Status BareClient::Leave() {
  grpc::ByteBuffer response;
  return Call(kLeave, &response);
}

absl::Status BareClient::Call(const char* method, grpc::ByteBuffer* response) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(DeadlineAfter(kPatience));
  const auto call = stub_.PrepareUnaryCall(&context, method, request_, &queue_);
  call->StartCall();
  grpc::Status status;
  call->Finish(response, &status, nullptr);
  void* tag;
  bool ok;
  queue_.Next(&tag, &ok);
  return FromGrpcStatus(status);
}

}  // namespace sluice::bench
