// A flag that ends waits: a thread pauses until the flag is raised or a time is over.
//
// The wait is measured by the monotonic clock. absl::CondVar (20220623) uses the wall clock
// instead: if somebody sets that clock back by an hour, a pause of half a second lasts for an hour.

#ifndef SLUICE_COMMON_BASE_STOP_FLAG_H_
#define SLUICE_COMMON_BASE_STOP_FLAG_H_

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace sluice {

// Any thread may call any method.
class StopFlag {
 public:
  // Ends all waits, now and later.
  void Raise();

  // Waits until the flag is raised, for at most `longest`. Returns whether it is raised.
  bool WaitFor(absl::Duration longest);

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool raised_ = false;
};

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_STOP_FLAG_H_
