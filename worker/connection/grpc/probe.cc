#include "worker/connection/grpc/probe.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/error.h"
#include "common/wire/grpc_runtime.h"
#include "common/wire/messages.h"
#include "common/wire/settings.h"
#include "sluice/v1/inspector.grpc.pb.h"
#include "sluice/v1/parameter_server.grpc.pb.h"
#include "worker/connection/grpc/answer.h"
#include "worker/connection/grpc/call.h"

namespace sluice {

GrpcProbe::GrpcProbe(GrpcEndpoint options)
    : options_(std::move(options)), channel_(options_.address, options_.credentials) {}

absl::StatusOr<std::unique_ptr<GrpcProbe>> GrpcProbe::Connect(const GrpcEndpoint& options) {
  KeepGrpcRunning();
  auto probe = absl::WrapUnique(new GrpcProbe(options));
  const absl::Status connected = probe->channel_.Connect(options.connect_timeout);
  if (!connected.ok()) return connected;
  return probe;
}

absl::StatusOr<ProbedServer> GrpcProbe::Ask() {
  grpc::ClientContext context;
  Prepare(context, kCallTimeout, CallMetadata());
  v1::ServerState state;
  const absl::Status end =
      EndOf(v1::Inspector::NewStub(channel_.get())
                ->GetServerState(&context, v1::GetServerStateRequest(), &state));
  if (!end.ok()) return end;
  if (!state.has_started() || !state.has_uptime()) {
    return UnexpectedMessage("GetServerState", "started and uptime");
  }
  return ProbedServer{state.version(), state.protocol(),
                      FromProto(state.started()) + FromProto(state.uptime())};
}

// A heartbeat of no session is refused in any case, and by whom it comes first.
absl::Status GrpcProbe::TryAccess() {
  grpc::ClientContext context;
  Prepare(context, kCallTimeout, {options_.token, options_.model});
  v1::HeartbeatResponse response;
  absl::Status end = EndOf(v1::ParameterServer::NewStub(channel_.get())
                               ->Heartbeat(&context, v1::HeartbeatRequest(), &response));
  const Reason reason = ReasonOf(end);
  const bool refused = reason == Reason::kBadToken || reason == Reason::kWrongRole;
  return refused || absl::IsUnavailable(end) ? end : absl::OkStatus();
}

}  // namespace sluice
