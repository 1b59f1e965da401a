#include "server/step_wait_log.h"

#include "absl/strings/str_cat.h"
#include "server/observe/readings.h"
#include "server/observe/server_state.h"

namespace sluice {
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
  return absl::StrCat("step ", state.step.value(), " has waited ", TimeWords(state.now - *since_),
                      " for ", AwaitedWords(ToProto(state)),
                      state.current.absent > 0 ? " (see --workers and --start-timeout)" : "");
}

}  // namespace sluice
