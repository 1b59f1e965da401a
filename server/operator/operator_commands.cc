#include "server/operator/operator_commands.h"

#include <utility>

#include "common/base/error.h"
#include "server/durable/save_checkpoint.h"

namespace sluice {

Step OperatorCommands::Drain() {
  shard_.Drain();
  return shard_.Describe().step;
}

absl::Status OperatorCommands::EvictWorker(const std::string& worker) {
  return shard_.Evict(worker);
}

absl::StatusOr<Step> OperatorCommands::SetLearningRate(absl::optional<double> learning_rate) {
  if (learning_rate.has_value()) {
    return shard_.ChangeSettings(
        [&](RuntimeSettings& settings) { return settings.Propose(*learning_rate); });
  }
  return MakeError(Reason::kBadArgument,
                   "field learning_rate is absent, expected at least 0, at most 1000000");
}

void OperatorCommands::SaveCheckpoint(SaveCallback done) {
  if (durable_ == nullptr) {
    done(absl::FailedPreconditionError(
        shard_.Describe().servers > 1
            ? "this job keeps no checkpoints; start all its servers with --checkpoint-dir"
            : "this server keeps no checkpoints; start it with --checkpoint-dir"));
    return;
  }
  // The thread that recovers is still preparing the directory, though the shard may have begun.
  if (shard_.durability().recovers()) {
    done(absl::UnavailableError("the servers restore their state; try again"));
    return;
  }
  sluice::SaveCheckpoint(shard_, *durable_, std::move(done));
}

}  // namespace sluice
