// Admin's ReadLogs: the stream of the server's log.

#ifndef SLUICE_SERVER_RPC_OPERATOR_READ_LOGS_H_
#define SLUICE_SERVER_RPC_OPERATOR_READ_LOGS_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "server/operator/log_ring.h"
#include "server/rpc/operator/open_watches.h"
#include "sluice/v1/admin.grpc.pb.h"

namespace sluice {

// BAD_ARGUMENT if too many lines are asked for.
absl::Status CheckReadLogs(const v1::ReadLogsRequest& request);

// Serves a request that was checked. `log` and `watches` outlive the call.
grpc::ServerWriteReactor<v1::ReadLogsResponse>* ServeLogs(const v1::ReadLogsRequest& request,
                                                          const LogRing& log, OpenWatches& watches);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_READ_LOGS_H_
