#include "server/observe/job_moment.h"

#include <set>
#include <string>

#include "common/base/clock.h"
#include "server/observe/server_state.h"

namespace sluice {
namespace {

// In pages, so that a job of many workers does not hold the shard's mutex for long.
std::vector<v1::Worker> WorkersOf(const ShardStatus& state, Shard& shard) {
  constexpr size_t kOfAPage = 64;
  const std::set<SessionId> pulling = PullingFrom(shard, state);
  std::vector<v1::Worker> workers;
  while (true) {
    std::vector<SessionRecord> page;
    shard.ReadSessions([&](const SessionRecords& records) {
      page = WorkersAfter(workers.empty() ? "" : workers.back().worker(), records, kOfAPage);
    });
    for (const SessionRecord& record : page) workers.push_back(ToProto(record, state, pulling));
    if (page.size() < kOfAPage) return workers;
  }
}

}  // namespace

JobMoment MomentOfServers(const ShardStatus& state, Shard& shard, const DurableDirectory* durable) {
  JobMoment moment;
  moment.time = RealClock().Now();
  moment.state = ToProto(state, shard, durable);
  moment.servers = ServersToProto(state);
  moment.tables = TablesToProto(state);
  return moment;
}

JobMoment MomentOf(const ShardStatus& state, Shard& shard, const DurableDirectory* durable) {
  JobMoment moment = MomentOfServers(state, shard, durable);
  moment.workers = WorkersOf(state, shard);
  moment.results = shard.results();
  return moment;
}

}  // namespace sluice
