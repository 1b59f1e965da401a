// The service Inspector on a server that is not the first one of its job: it passes each call on to
// the first server, but for GetRow, which it answers. inspector.proto has the limits.
//
// Who may call is checked here, by the caller's role, as at the first server. The first server then
// sees this server's certificate, whose role may inspect, too.

#ifndef SLUICE_SERVER_RPC_OPERATOR_PASSING_INSPECTOR_H_
#define SLUICE_SERVER_RPC_OPERATOR_PASSING_INSPECTOR_H_

#include <grpcpp/channel.h>
#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/holder/held_rows.h"
#include "server/rpc/operator/open_watches.h"

namespace sluice {

struct PassingInspectorOptions {
  std::string first_server;  // its address, for people
  // A new connection to it. Called by gRPC's threads, one at a time.
  std::function<absl::StatusOr<std::shared_ptr<grpc::Channel>>()> connect;
  // The rows of this server. Any thread may call it.
  std::function<HeldRows()> rows;
  // So long a call that is no stream may take.
  absl::Duration patience = absl::Seconds(10);
};

// `watches` outlives it.
std::unique_ptr<grpc::Service> MakeGrpcPassingInspector(PassingInspectorOptions options,
                                                        OpenWatches& watches);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_PASSING_INSPECTOR_H_
