#include "server/rpc/shared_memories.h"

#include <glog/logging.h>

#include <utility>

namespace sluice {

namespace {

SenderMemory MemoryOf(const absl::optional<SharedMemoryName>& name, const std::string& worker) {
  if (!name.has_value()) return nullptr;
  auto memory = SharedMemoryView::Open(*name);
  if (memory.ok()) return *std::move(memory);
  // Of several servers, the others are often on other nodes than a worker.
  LOG_IF(INFO, !worker.empty()) << worker << " goes through sockets: " << memory.status().message();
  return nullptr;
}

}  // namespace

void SharedMemories::Open(SessionId session, const absl::optional<SharedMemoryName>& name,
                          const std::string& worker) {
  SenderMemory memory = enabled_ ? MemoryOf(name, worker) : nullptr;
  absl::MutexLock lock(&mu_);
  by_session_[session] = std::move(memory);
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
