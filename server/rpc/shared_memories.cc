#include "server/rpc/shared_memories.h"

#include <glog/logging.h>

#include <utility>

#include "common/base/error.h"
#include "common/wire/messages.h"

namespace sluice {

bool SharedMemories::Open(SessionId session, const v1::JoinRequest& request) {
  if (!enabled_ || !request.has_memory()) return false;
  auto memory = SharedMemoryView::Open(FromProto(request.memory()));
  if (!memory.ok()) {
    LOG(INFO) << Shown(request.worker()) << " goes through sockets: " << memory.status().message();
    return false;
  }
  absl::MutexLock lock(&mu_);
  by_session_[session] = *std::move(memory);
  return true;
}

SenderMemory SharedMemories::Find(SessionId session) const {
  absl::MutexLock lock(&mu_);
  const auto found = by_session_.find(session);
  return found == by_session_.end() ? nullptr : found->second;
}

void SharedMemories::Close(SessionId session) {
  SenderMemory closed;  // unmapped when the lock is released
  absl::MutexLock lock(&mu_);
  const auto found = by_session_.find(session);
  if (found == by_session_.end()) return;
  closed = std::move(found->second);
  by_session_.erase(found);
}

}  // namespace sluice
