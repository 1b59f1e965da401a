// Checks the leader's log at a replica: that the next command may stand at this place. A replica
// executes commands without checks, so a command that breaks the rules is refused before.

#ifndef SLUICE_SERVER_REPLICA_COMMAND_CHECK_H_
#define SLUICE_SERVER_REPLICA_COMMAND_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/replica/replica_commands.h"

namespace sluice {

// Externally synchronized.
class CommandCheck {
 public:
  // OK, and the command is part of the log now; or BAD_ARGUMENT with the rule that it breaks, and
  // the log has ended.
  absl::Status Take(const ReplicaCommand& command);

  // The replica has reported this.
  void Note(const ReplicaReport& report);

 private:
  struct Push {
    SessionId session;
    bool is_here = false;  // the replica keeps its gradient
  };

  absl::Status Check(const OpenModel& command);
  absl::Status Check(const LoadCheckpoint& command);
  absl::Status Check(const ReplayStep& command);
  absl::Status Check(const BeginJournal& command);
  absl::Status Check(const OpenSession& command);
  absl::Status Check(const AdmitPush& command);
  absl::Status Check(const DropPush& command);
  absl::Status Check(const TakeParameters& command);
  absl::Status Check(const AddPush& command);
  absl::Status Check(const StepOrder& order);
  absl::Status Check(const PublishStep& command);
  absl::Status Check(const ReleasePull& command) const;
  absl::Status Check(const DropPull& command) const;
  absl::Status Check(const EndSession& command);
  absl::Status Check(const TakeCheckpoint& command) const;
  absl::Status Check(const KeepCheckpoints& command) const;
  absl::Status Check(const SummarizeTensor& command);
  absl::Status Check(const EndJob& command);

  absl::Status CheckOpen(SessionId session) const;
  absl::Status CheckPrepare(const StepOrder& order) const;
  absl::Status CheckFits(const TensorQuery& query) const;
  absl::Status TakePush(PushId push);

  std::shared_ptr<const Layout> layout_;  // null until the model is known
  OptimizerConfig optimizer_;             // likewise
  bool has_parameters_ = false;
  bool loaded_ = false;     // LoadCheckpoint has come
  bool loading_ = false;    // and is not carried out
  bool journals_ = false;   // BeginJournal has come
  bool ended_ = false;      // EndJob has come
  uint64_t summaries_ = 0;  // the number of the latest SummarizeTensor
  std::set<SessionId> sessions_;
  std::map<PushId, Push> pushes_;
  // Of the step that is being made.
  uint64_t added_ = 0;
  bool last_ = false;                       // the last gradient was added
  absl::optional<StepOrder::Kind> latest_;  // order, but for kSample
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_COMMAND_CHECK_H_
