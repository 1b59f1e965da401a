// The session of a trainer behind sluice.h, which leaves the job if its process ends in good order.

#ifndef SLUICE_WORKER_C_TRAINER_SESSION_H_
#define SLUICE_WORKER_C_TRAINER_SESSION_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/connection/exit_notice.h"
#include "worker/connection/module/module_session.h"

namespace sluice {

// One thread uses it. If exit() is called with the code 0 before Leave() or the destructor, it
// leaves then, unless a call is still under way a second later.
class TrainerSession {
 public:
  explicit TrainerSession(std::unique_ptr<ModuleSession> session);

  TrainerSession(const TrainerSession&) = delete;
  TrainerSession& operator=(const TrainerSession&) = delete;

  ModulePlace place() const { return place_; }

  // Calls `use`, and returns its result.
  absl::Status Use(const std::function<absl::Status(ModuleSession& session)>& use);

  absl::Status Leave(bool stay);

 private:
  // What the handler of exit() uses, perhaps while the destructor runs.
  struct Shared {
    absl::Mutex mu;
    bool idle ABSL_GUARDED_BY(mu) = true;  // who sets it to false may use the session
    std::unique_ptr<ModuleSession> session;
  };

  static void LeaveAtExit(Shared& shared);
  static absl::Status UseAlone(Shared& shared,
                               const std::function<absl::Status(ModuleSession& session)>& use);

  const ModulePlace place_;
  const std::shared_ptr<Shared> shared_;
  std::unique_ptr<ExitNotice> exit_notice_;  // null after it has left
};

}  // namespace sluice

#endif  // SLUICE_WORKER_C_TRAINER_SESSION_H_
