// The streams of a server that last until their caller or the server ends them. When the server
// goes down, it ends them all.

#ifndef SLUICE_SERVER_RPC_OPERATOR_OPEN_WATCHES_H_
#define SLUICE_SERVER_RPC_OPERATOR_OPEN_WATCHES_H_

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// A stream that ends when the server does.
class OpenWatch {
 public:
  virtual ~OpenWatch() = default;
  // Sends the caller the last change, if there is one, and ends the call with OK. Any thread may
  // call it.
  virtual void End() = 0;
};

// The watches of a server. May be used by any thread, and outlives them.
class OpenWatches {
 public:
  // A watch that is added after EndAll() ends soon.
  void Add(OpenWatch* watch) {
    absl::MutexLock lock(&mu_);
    open_.insert(watch);
    if (ended_) watch->End();
  }
  void Remove(OpenWatch* watch) {
    absl::MutexLock lock(&mu_);
    open_.erase(watch);
  }

  // The server is going down: ends all watches.
  void EndAll() {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    for (OpenWatch* const watch : open_) watch->End();
  }

 private:
  absl::Mutex mu_;
  std::set<OpenWatch*> open_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_OPEN_WATCHES_H_
