// The handler of PullRows: one object per pull.

#ifndef SLUICE_SERVER_RPC_PULL_ROWS_H_
#define SLUICE_SERVER_RPC_PULL_ROWS_H_

#include <grpcpp/grpcpp.h>

#include "common/encoding/transform_registry.h"
#include "server/replica/parameter_store.h"
#include "server/rpc/access/pull_limits.h"

namespace sluice {

// Serves one call: waits in the store, perhaps waits in `limits`, then reads and writes one chunk
// of the rows after the other. Its messages are the bytes of PullRowsRequest and
// PullParamsResponse. The reactor deletes itself when the call is done. `limits`, `transforms` and
// `store` outlive the reactor.
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServePullRows(grpc::CallbackServerContext& context,
                                                          const grpc::ByteBuffer& request,
                                                          PullLimits& limits,
                                                          const TransformRegistry& transforms,
                                                          ParameterStore& store);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_PULL_ROWS_H_
