#include "server/rpc/shared_memories.h"

#include <glog/logging.h>

#include <utility>

#include "common/base/error.h"
#include "common/wire/messages.h"

namespace sluice {

namespace {

SenderMemory MemoryOf(const v1::JoinRequest& request) {
  if (!request.has_memory()) return nullptr;
  auto memory = SharedMemoryView::Open(FromProto(request.memory()));
  if (memory.ok()) return *std::move(memory);
  LOG(INFO) << Shown(request.worker()) << " goes through sockets: " << memory.status().message();
  return nullptr;
}

}  // namespace

bool SharedMemories::Open(SessionId session, const v1::JoinRequest& request) {
  SenderMemory memory = enabled_ ? MemoryOf(request) : nullptr;
  absl::MutexLock lock(&mu_);
  return (by_session_[session] = std::move(memory)) != nullptr;
}

absl::optional<SenderMemory> SharedMemories::Find(SessionId session) const {
  absl::MutexLock lock(&mu_);
  const auto found = by_session_.find(session);
  if (found == by_session_.end()) return absl::nullopt;
  return found->second;
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
