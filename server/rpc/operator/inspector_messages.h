// Translates the shard's state into the messages of the Inspector.

#ifndef SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_MESSAGES_H_
#define SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_MESSAGES_H_

#include <cstddef>

#include "absl/time/time.h"
#include "server/durable/directory.h"
#include "server/snapshots/tensor_statistics.h"
#include "server/state/session_record.h"
#include "server/state/shard_status.h"
#include "server/state/table_status.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

v1::ServerState ToProto(const ShardStatus& state);
// The same with the newest checkpoint of `durable`, which may be null.
v1::ServerState ToProto(const ShardStatus& state, const DurableDirectory* durable);
// `state` was read at about the same time; lags and times since are relative to it.
v1::Worker ToProto(const SessionRecord& record, const ShardStatus& state);
v1::TensorStatistics ToProto(const TensorStatistics& statistics);
// All servers of the job.
v1::ListServersResponse ServersToProto(const ShardStatus& state);
// Table i of the layout, of which all servers together have `all`. A worker has joined.
v1::TableState TableToProto(size_t i, const TableStatus& all, const ShardStatus& state);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_INSPECTOR_MESSAGES_H_
