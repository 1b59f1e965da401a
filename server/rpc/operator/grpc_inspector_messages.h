// The shard's state as the Inspector's messages.

#ifndef SLUICE_SERVER_RPC_OPERATOR_GRPC_INSPECTOR_MESSAGES_H_
#define SLUICE_SERVER_RPC_OPERATOR_GRPC_INSPECTOR_MESSAGES_H_

#include "absl/time/time.h"
#include "server/snapshots/tensor_statistics.h"
#include "server/state/session_record.h"
#include "server/state/shard_state.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

v1::ServerState ToProto(const ShardState& state);
v1::Worker ToProto(const SessionRecord& record, const ShardState& state);
v1::TensorStatistics ToProto(const TensorStatistics& statistics);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_GRPC_INSPECTOR_MESSAGES_H_
