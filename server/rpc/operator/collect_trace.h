// Admin's CollectTrace: the stream of what the server's trace records for some seconds.

#ifndef SLUICE_SERVER_RPC_OPERATOR_COLLECT_TRACE_H_
#define SLUICE_SERVER_RPC_OPERATOR_COLLECT_TRACE_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/trace/trace.h"
#include "server/rpc/operator/open_watches.h"
#include "sluice/v1/admin.grpc.pb.h"

namespace sluice {

inline constexpr absl::Duration kLongestCollection = absl::Seconds(60);
inline constexpr uint64_t kMostCollectedBytes = uint64_t{64} << 20;

// BAD_ARGUMENT if the time is not above 0, or too long.
absl::Status CheckCollectTrace(const v1::CollectTraceRequest& request);

// Serves a request that was checked. `trace` and `watches` outlive the call.
grpc::ServerWriteReactor<v1::CollectTraceResponse>* ServeTrace(
    const v1::CollectTraceRequest& request, Trace& trace, OpenWatches& watches);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_COLLECT_TRACE_H_
