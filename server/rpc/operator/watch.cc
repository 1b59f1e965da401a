#include "server/rpc/operator/watch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/wire/settings.h"
#include "server/rpc/operator/watch_stream.h"

namespace sluice {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(1);

absl::Duration IntervalOf(const v1::WatchStateRequest& request) {
  if (!request.has_min_interval()) return kDefaultInterval;
  return std::max(FromProto(request.min_interval()), kShortestWatchInterval);
}

// The part of the state whose change a watcher is told of; times are not part of it.
std::string AspectOf(const v1::ServerState& state) {
  const v1::StepState& step = state.current();
  std::vector<std::string> names(step.contributed().begin(), step.contributed().end());
  for (const v1::AwaitedWorker& worker : step.awaited()) {
    names.push_back(absl::StrCat("-", worker.worker()));
  }
  for (const v1::TrainingWarning& warning : state.warnings()) {
    names.push_back(absl::StrCat(warning.has_over() ? "over " : "", warning.text()));
  }
  const std::string saved =
      state.has_last_checkpoint() ? absl::StrCat(state.last_checkpoint().step()) : "";
  return absl::StrCat(state.step(), " ", static_cast<int>(state.phase()), " ",
                      static_cast<int>(state.verdict().kind()), " ", state.workers(), " ",
                      state.observers(), " ", step.accumulated(), " ", step.skipped(), " ",
                      state.measurement().reports(), " ", saved, " ", absl::StrJoin(names, "\n"));
}

}  // namespace

grpc::ServerWriteReactor<v1::ServerState>* ServeWatch(const v1::WatchStateRequest& request,
                                                      std::function<v1::ServerState()> look,
                                                      OpenWatches& watches) {
  const auto next = [look = std::move(look),
                     last = std::string()](v1::ServerState* message) mutable {
    v1::ServerState state = look();
    std::string aspect = AspectOf(state);
    if (last == aspect) return false;
    last = std::move(aspect);  // never empty
    *message = std::move(state);
    return true;
  };
  return new WatchStream<v1::ServerState>(watches, IntervalOf(request), next);
}

}  // namespace sluice
