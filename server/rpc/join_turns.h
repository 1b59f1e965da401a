// Lets few requests to join be received in parts at a time, because each takes memory for a layout
// of up to a million tensors. The other calls wait, and the server reads nothing of them.
// JoinInParts uses it.

#ifndef SLUICE_SERVER_RPC_JOIN_TURNS_H_
#define SLUICE_SERVER_RPC_JOIN_TURNS_H_

#include <cstddef>
#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// May be used by any thread. Callbacks run outside its lock.
class JoinTurns {
 public:
  // How many have their turn at once: callers that may train, and callers that may only observe,
  // who so cannot hold up workers.
  static constexpr size_t kMostOfWorkers = 2;
  static constexpr size_t kMostOfObservers = 1;

  explicit JoinTurns(size_t most) : most_(most) {}

  // Waits for the turn of `call`. `go` is called once, when it has come, perhaps before Wait()
  // returns. It may still run while another thread calls Leave().
  void Wait(const void* call, std::function<void()> go) ABSL_LOCKS_EXCLUDED(mu_);

  // The call's turn or wait has ended. Does nothing for a call that is not here.
  void Leave(const void* call) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Entry {
    const void* call = nullptr;
    std::function<void()> go;
  };

  const size_t most_;
  absl::Mutex mu_;
  std::deque<Entry> calls_ ABSL_GUARDED_BY(mu_);  // the first `most_` have their turn
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_JOIN_TURNS_H_
