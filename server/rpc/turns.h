// Lets few calls be received at a time; the others wait in their order, and the server reads
// nothing of them.
//
// JoinInParts uses it because each request may take memory for a layout of a million tensors, and
// OfferTurns because each offer of initial parameters takes memory for the whole model.

#ifndef SLUICE_SERVER_RPC_TURNS_H_
#define SLUICE_SERVER_RPC_TURNS_H_

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {

// Whose call it is, and how many calls of this owner may be here at once.
struct TurnOwner {
  std::string name;
  size_t most = 1;  // at least 1
};

enum class Turn { kNow, kLater, kRefused };

// May be used by any thread. Callbacks run outside its lock. No method takes longer if more calls
// wait.
class Turns {
 public:
  // `most` calls have their turn at once.
  explicit Turns(size_t most) : most_(most) {}

  // Adds `call`.
  // kNow: it has its turn. `go` is not called.
  // kLater: `go` is called once when its turn has come, unless Cancel() or Leave() removes the call
  // before. It may be called before Add() returns, and may still run while another thread calls
  // Leave().
  // kRefused: the owner has as many calls here already. The call is not added.
  Turn Add(const void* call, TurnOwner owner, std::function<void()> go) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the call's wait. Returns true if it waited; then `go` is never called.
  bool Cancel(const void* call) ABSL_LOCKS_EXCLUDED(mu_);

  // The call's turn or wait has ended. Does nothing for a call that is not here.
  void Leave(const void* call) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Call {
    std::string owner;
    std::list<const void*>::iterator place;  // end(): it has its turn
    std::function<void()> go;
  };
  using Calls = std::unordered_map<const void*, Call>;

  Call Remove(Calls::iterator call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::function<void()> TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t most_;
  absl::Mutex mu_;
  Calls calls_ ABSL_GUARDED_BY(mu_);
  std::list<const void*> waiting_ ABSL_GUARDED_BY(mu_);                    // in their order
  std::unordered_map<std::string, size_t> calls_of_ ABSL_GUARDED_BY(mu_);  // of owners with any
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_TURNS_H_
