// What an operator may do to a running job. The Admin service and the live page pass their
// requests to it, so that both follow the same rules and give the same errors.

#ifndef SLUICE_SERVER_OPERATOR_OPERATOR_COMMANDS_H_
#define SLUICE_SERVER_OPERATOR_OPERATOR_COMMANDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/durable/directory.h"
#include "server/shard/shard.h"

namespace sluice {

// Any thread may call any method. The caller has checked who asks. Errors: admin.proto.
class OperatorCommands {
 public:
  // Both outlive this object and the callbacks of SaveCheckpoint(). `durable` is null if the server
  // keeps no checkpoints.
  OperatorCommands(Shard& shard, DurableDirectory* durable) : shard_(shard), durable_(durable) {}

  // Ends the job as SIGTERM does. Returns the step that it has reached.
  Step Drain();
  // Its process may not join again.
  absl::Status EvictWorker(const std::string& worker);
  // Returns the first step that has the rate. BAD_ARGUMENT if the rate is absent or out of range.
  absl::StatusOr<Step> SetLearningRate(absl::optional<double> learning_rate);
  // Calls `done` when the checkpoint is saved or cannot be: on another thread, or on this one
  // before it returns. UNAVAILABLE while the servers restore their state.
  void SaveCheckpoint(SaveCallback done);

 private:
  Shard& shard_;
  DurableDirectory* const durable_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_OPERATOR_OPERATOR_COMMANDS_H_
