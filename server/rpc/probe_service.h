// The Probe service: moves bytes so that a caller can measure its path to this server. probe.proto
// defines the call. It uses nothing of the job: no session, no shard, no lease.

#ifndef SLUICE_SERVER_RPC_PROBE_SERVICE_H_
#define SLUICE_SERVER_RPC_PROBE_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "server/rpc/access/rpc_limits.h"
#include "server/rpc/operator/open_watches.h"

namespace sluice {

struct ProbeOptions {
  std::string token;           // that callers must present; empty: none
  bool shares_memory = false;  // whether the server reads workers' memory
  ProbeLimits limits = {};
};

// The gRPC server calls the service from many threads. `watches` outlives it, and ends its probes
// when the server goes down.
std::unique_ptr<grpc::Service> MakeGrpcProbeService(ProbeOptions options, OpenWatches& watches);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PROBE_SERVICE_H_
