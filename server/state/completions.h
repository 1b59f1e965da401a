// Callbacks collected under a lock, to be run once it is released.

#ifndef SLUICE_SERVER_STATE_COMPLETIONS_H_
#define SLUICE_SERVER_STATE_COMPLETIONS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

class Completions {
 public:
  void Add(std::function<void()> completion) { pending_.push_back(std::move(completion)); }

  // Takes over what `other` has collected.
  void Take(Completions& other) {
    for (std::function<void()>& completion : other.pending_) Add(std::move(completion));
    other.pending_.clear();
  }

  // To be called with no lock held.
  void Run() {
    for (const std::function<void()>& completion : pending_) completion();
    pending_.clear();
  }

 private:
  std::vector<std::function<void()>> pending_;
};

// Holds a mutex for as long as it lives; then runs what was completed meanwhile.
class ABSL_SCOPED_LOCKABLE CompletingLock {
 public:
  explicit CompletingLock(absl::Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) {
    mu_->Lock();
  }
  ~CompletingLock() ABSL_UNLOCK_FUNCTION() {
    mu_->Unlock();
    completions_.Run();
  }
  CompletingLock(const CompletingLock&) = delete;
  CompletingLock& operator=(const CompletingLock&) = delete;

  Completions* completions() { return &completions_; }

 private:
  absl::Mutex* const mu_;
  Completions completions_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_COMPLETIONS_H_
