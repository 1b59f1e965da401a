// Translates what a shard reports into the messages of the Inspector: the only place that does.
// Everything that shows a server reads these messages.

#ifndef SLUICE_SERVER_OBSERVE_SERVER_STATE_H_
#define SLUICE_SERVER_OBSERVE_SERVER_STATE_H_

#include <set>
#include <vector>

#include "server/durable/directory.h"
#include "server/shard/shard.h"
#include "server/state/session_record.h"
#include "server/state/shard_status.h"
#include "sluice/v1/inspector.pb.h"

namespace sluice {

// Any thread may call these functions. `state` is what Shard::Describe() returned.

// Without checkpoints and tasks, which `state` does not have.
v1::ServerState ToProto(const ShardStatus& state);
// With them. `durable` may be null.
v1::ServerState ToProto(const ShardStatus& state, Shard& shard, const DurableDirectory* durable);

// The sessions to which a server is sending parameters.
std::set<SessionId> PullingFrom(Shard& shard, const ShardStatus& state);
// Lags and times since are relative to `state`, which was read at about the same time.
v1::Worker ToProto(const SessionRecord& record, const ShardStatus& state,
                   const std::set<SessionId>& pulling);

// All servers of the job, in the order of their indices.
std::vector<v1::Server> ServersToProto(const ShardStatus& state);

// Returns the sums over all servers for each table, in the order of the layout.
std::vector<v1::TableState> TablesToProto(const ShardStatus& state);

}  // namespace sluice

#endif  // SLUICE_SERVER_OBSERVE_SERVER_STATE_H_
