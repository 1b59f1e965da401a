// The memory that workers of this node push from, by session.

#ifndef SLUICE_SERVER_RPC_SHARED_MEMORIES_H_
#define SLUICE_SERVER_RPC_SHARED_MEMORIES_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/wire/chunk.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {

// May be used by any thread.
class SharedMemories {
 public:
  // Unless `enabled`, nobody shares anything.
  explicit SharedMemories(bool enabled) : enabled_(enabled) {}

  // Maps the memory that a worker named. False if it named none, or it cannot be reached: it is of
  // another node, user or container. Then its tensors travel through sockets.
  bool Open(SessionId session, const v1::JoinRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Null if the session shares none.
  SenderMemory Find(SessionId session) const ABSL_LOCKS_EXCLUDED(mu_);

  // The session has ended. What was received from its memory stays mapped as long as it is used.
  void Close(SessionId session) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const bool enabled_;
  mutable absl::Mutex mu_;
  std::map<SessionId, SenderMemory> by_session_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SHARED_MEMORIES_H_
