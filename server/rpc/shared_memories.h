// The shared memory from which workers on this node push, by session. It is mapped while a session
// lasts, and each push looks it up.

#ifndef SLUICE_SERVER_RPC_SHARED_MEMORIES_H_
#define SLUICE_SERVER_RPC_SHARED_MEMORIES_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/tensor/shared_memory.h"
#include "common/wire/chunk.h"

namespace sluice {

// May be used by any thread.
class SharedMemories {
 public:
  // If not `enabled`, no memory is mapped.
  explicit SharedMemories(bool enabled) : enabled_(enabled) {}

  // The session has begun. Maps the memory that the worker named, if it did. Nothing is mapped if
  // that cannot be opened, because the worker runs on another node, as another user or in another
  // container. Then its tensors travel through sockets.
  // The log then names the worker, unless `worker` is empty.
  void Open(SessionId session, const absl::optional<SharedMemoryName>& name,
            const std::string& worker) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether the session's memory is mapped.
  bool Shares(SessionId session) const ABSL_LOCKS_EXCLUDED(mu_) {
    return Find(session).value_or(nullptr) != nullptr;
  }

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
