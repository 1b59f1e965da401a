#include "server/step_wait_log.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/error.h"

namespace sluice {
namespace {

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1fs", absl::ToDoubleSeconds(duration));
}

std::string WhoIsAwaited(const ShardStatus& state) {
  if (state.awaited_holder.has_value()) {
    return absl::StrCat("server ", state.awaited_holder->server, " of ", state.servers);
  }
  const StepState& step = state.current;
  std::vector<std::string> workers;
  for (const AwaitedWorker& worker : step.awaited) {
    workers.push_back(absl::StrCat(Shown(worker.worker), " (last seen ",
                                   Seconds(worker.since_last_seen), " ago, ", worker.bytes_arrived,
                                   " bytes of its push here)"));
  }
  const size_t unnamed = step.missing - step.awaited.size() - step.absent;
  if (unnamed > 0) workers.push_back(absl::StrCat(unnamed, " more"));
  if (step.absent > 0) {
    workers.push_back(absl::StrCat(step.absent, step.absent == 1 ? " worker" : " workers",
                                   " still to join (see --workers and --start-timeout)"));
  }
  if (workers.empty()) {
    return absl::StrCat(step.required - step.accumulated, " more gradients");
  }
  return absl::StrJoin(workers, ", ");
}

}  // namespace

absl::optional<std::string> StepWaitLog::Look(const ShardStatus& state) {
  absl::optional<absl::Time> since = state.current.since;
  if (state.awaited_holder.has_value()) since = state.awaited_holder->since;
  const bool deserted = state.phase == Phase::kWaitingForWorkers && state.workers == 0 &&
                        state.times.initialized.has_value();
  if (!deserted) deserted_.reset();
  if (deserted && !deserted_.has_value()) deserted_ = state.now;
  if (deserted && !since.has_value()) since = deserted_;
  if (since_ != since) next_ = threshold_;
  since_ = since;
  if (!since_.has_value() || state.now - *since_ < next_) return absl::nullopt;
  next_ = 2 * (state.now - *since_);
  return absl::StrCat("step ", state.step.value(), " has waited ", Seconds(state.now - *since_),
                      " for ", WhoIsAwaited(state));
}

}  // namespace sluice
