// The shared memory from which workers on this node push, by session. Join opens and closes it, and
// each push looks it up.

#ifndef SLUICE_SERVER_RPC_SHARED_MEMORIES_H_
#define SLUICE_SERVER_RPC_SHARED_MEMORIES_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/wire/chunk.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// May be used by any thread.
class SharedMemories {
 public:
  // If not `enabled`, Open() always returns false.
  explicit SharedMemories(bool enabled) : enabled_(enabled) {}

  // The session's stream has begun. Maps the memory that the worker named. Returns false if it
  // named none, or if it cannot be opened, because the worker runs on another node, as another user
  // or in another container. Then its tensors travel through sockets.
  bool Open(SessionId session, const v1::JoinRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // The session's memory; null if it shares none. Absent if its stream has ended: then the memory
  // is no longer mapped, though the session lasts until its lease is over.
  absl::optional<SenderMemory> Find(SessionId session) const ABSL_LOCKS_EXCLUDED(mu_);

  // The session's stream has ended. The memory stays mapped while chunks that refer to it are in
  // use.
  void Close(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const bool enabled_;
  mutable absl::Mutex mu_;
  std::map<SessionId, SenderMemory> by_session_ ABSL_GUARDED_BY(mu_);  // null: shares none
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SHARED_MEMORIES_H_
