#include "server/replica/arrived_pushes.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice {

void ArrivedPushes::Keep(std::unique_ptr<PendingPush> push) {
  const PushId id = push->id();
  absl::MutexLock lock(&mu_);
  pushes_.emplace(id, std::move(push));
}

std::unique_ptr<PendingPush> ArrivedPushes::Take(PushId push) {
  std::unique_ptr<PendingPush> taken = Drop(push);
  CHECK(taken != nullptr) << "push " << push.value() << " has not arrived here";
  return taken;
}

std::unique_ptr<PendingPush> ArrivedPushes::Drop(PushId push) {
  absl::MutexLock lock(&mu_);
  auto kept = pushes_.extract(push);
  return kept.empty() ? nullptr : std::move(kept.mapped());
}

std::vector<std::unique_ptr<PendingPush>> ArrivedPushes::DropSession(
    SessionId session, absl::Span<const PushId> except) {
  std::vector<std::unique_ptr<PendingPush>> dropped;
  absl::MutexLock lock(&mu_);
  for (auto kept = pushes_.begin(); kept != pushes_.end();) {
    const bool stays = kept->second->header().session != session ||
                       std::find(except.begin(), except.end(), kept->first) != except.end();
    if (!stays) dropped.push_back(std::move(kept->second));
    kept = stays ? std::next(kept) : pushes_.erase(kept);
  }
  return dropped;
}

}  // namespace sluice
