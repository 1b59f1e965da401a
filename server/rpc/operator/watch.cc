#include "server/rpc/operator/watch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/wire/messages.h"
#include "server/rpc/operator/inspector_messages.h"
#include "server/rpc/operator/watch_stream.h"

namespace sluice {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(1);

absl::Duration IntervalOf(const v1::WatchStateRequest& request) {
  if (!request.has_min_interval()) return kDefaultInterval;
  return std::max(FromProto(request.min_interval()), kShortestWatchInterval);
}

// The step of the last checkpoint; empty if there is none.
std::string SavedStep(const DurableDirectory* durable) {
  const auto saved = durable == nullptr ? absl::nullopt : durable->last_saved();
  return saved.has_value() ? absl::StrCat(saved->step.value()) : "";
}

// The part of the state whose change a watcher is told of; times are not part of it.
std::string AspectOf(const ShardStatus& state, const DurableDirectory* durable) {
  std::vector<std::string> names = state.current.contributed;
  for (const AwaitedWorker& worker : state.current.awaited) {
    names.push_back(absl::StrCat("-", worker.worker));
  }
  for (const TrainingWarning& warning : state.warnings) {
    names.push_back(absl::StrCat(warning.over.has_value() ? "over " : "", warning.text));
  }
  return absl::StrCat(state.step.value(), " ", static_cast<int>(state.phase), " ", state.workers,
                      " ", state.observers, " ", state.current.accumulated, " ",
                      state.current.skipped, " ", state.measured.count, " ", SavedStep(durable),
                      " ", absl::StrJoin(names, "\n"));
}

}  // namespace

grpc::ServerWriteReactor<v1::ServerState>* ServeWatch(const v1::WatchStateRequest& request,
                                                      const Shard& shard,
                                                      const DurableDirectory* durable,
                                                      OpenWatches& watches) {
  const auto look = [&shard, durable, last = std::string()](v1::ServerState* message) mutable {
    const ShardStatus state = shard.Describe();
    std::string aspect = AspectOf(state, durable);
    if (last == aspect) return false;
    last = std::move(aspect);  // never empty
    *message = ToProto(state, durable);
    return true;
  };
  return new WatchStream<v1::ServerState>(watches, IntervalOf(request), look);
}

}  // namespace sluice
