// A thread for the calls that sluice.h begins and waits for.

#ifndef SLUICE_WORKER_C_CALL_THREAD_H_
#define SLUICE_WORKER_C_CALL_THREAD_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/serial_executor.h"

namespace sluice {

// Runs one call at a time. One thread uses it. The destructor waits for what runs.
class CallThread {
 public:
  // FAILED_PRECONDITION names the function `call` if another is under way.
  absl::Status CheckIdle(absl::string_view call) const;

  // A call was begun, and Wait() has not returned its result.
  bool under_way() const { return begun_; }

  // Begins a call, and returns at once. Only if none is under way.
  void Begin(std::function<absl::Status()> call);

  // Waits for the call that was begun. Nothing if the time is over; OK if no call was begun.
  absl::optional<absl::Status> Wait(absl::Duration longest) ABSL_LOCKS_EXCLUDED(mu_);

  // Runs a task for which nobody waits, after what was begun before.
  void Run(std::function<void()> task) { thread_.Run(std::move(task)); }

  // Waits until all tasks are done.
  void Drain() { thread_.Drain(); }

 private:
  bool begun_ = false;
  absl::Mutex mu_;
  absl::optional<absl::Status> result_ ABSL_GUARDED_BY(mu_);  // of the call that was begun
  SerialExecutor thread_;                                     // destroyed first, after its tasks
};

}  // namespace sluice

#endif  // SLUICE_WORKER_C_CALL_THREAD_H_
