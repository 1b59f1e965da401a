// Callbacks that are collected while a mutex is held and run after it is released. No callback of
// the server runs under a lock.

#ifndef SLUICE_SERVER_STATE_COMPLETIONS_H_
#define SLUICE_SERVER_STATE_COMPLETIONS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Externally synchronized.
class Completions {
 public:
  void Add(std::function<void()> completion) { pending_.push_back(std::move(completion)); }

  // Moves the callbacks of `other` to the end of these.
  void Take(Completions& other) {
    for (std::function<void()>& completion : other.pending_) Add(std::move(completion));
    other.pending_.clear();
  }

  // Runs the callbacks in order and forgets them. Call it with no lock held.
  void Run() {
    for (const std::function<void()>& completion : pending_) completion();
    pending_.clear();
  }

 private:
  std::vector<std::function<void()>> pending_;
};

// Holds a mutex for a scope. At the end it releases the mutex, then runs the collected callbacks.
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
