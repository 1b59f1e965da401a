#include "server/holder/holder.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice {

void Holder::Open(const std::shared_ptr<const Layout>& layout, const OptimizerConfig& optimizer,
                  const Stripes& stripes, uint32_t stripe) {
  layout_ = stripes.count() == 1
                ? layout
                : std::make_shared<const Layout>(layout->OfStripe(stripes, stripe));
  snapshots_ = std::make_unique<SnapshotStore>(layout_->size(), memory_);
  executor_ =
      std::make_unique<ModelExecutor>(layout, optimizer, stripes, stripe, table_memory_, parallel_);
}

void Holder::Keep(std::unique_ptr<PendingPush> push) {
  const PushId id = push->id();
  kept_.emplace(id, std::move(push));
}

std::unique_ptr<PendingPush> Holder::Take(PushId push) {
  auto kept = kept_.extract(push);
  CHECK(!kept.empty()) << "push " << push.value() << " has not arrived here";
  return std::move(kept.mapped());
}

std::vector<std::unique_ptr<PendingPush>> Holder::TakeSession(SessionId session,
                                                              absl::Span<const PushId> except) {
  std::vector<std::unique_ptr<PendingPush>> taken;
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    const bool stays = kept->second->header().session != session ||
                       std::find(except.begin(), except.end(), kept->first) != except.end();
    if (!stays) taken.push_back(std::move(kept->second));
    kept = stays ? std::next(kept) : kept_.erase(kept);
  }
  return taken;
}

std::unique_ptr<PendingPush> Holder::Drop(PushId push) {
  auto kept = kept_.extract(push);
  return kept.empty() ? nullptr : std::move(kept.mapped());
}

std::shared_ptr<Snapshot> Holder::MakeFirst(Step step) {
  std::shared_ptr<Snapshot> first = snapshots_->Make();
  first->step = step;
  return first;
}

std::shared_ptr<FloatBuffer> Holder::LendNext(PushId push) {
  if (step_.next != nullptr || !lent_.expired()) return nullptr;
  const std::shared_ptr<Snapshot> next = snapshots_->Make();
  lent_ = next;
  lent_to_ = push;
  return {next, &next->values};
}

SnapshotPair Holder::BeginStep(PushId first) {
  if (step_.next == nullptr) {
    std::shared_ptr<Snapshot> next = first == lent_to_ ? lent_.lock() : nullptr;
    if (next == nullptr) next = snapshots_->Make();
    step_ = {snapshots_->latest(), std::move(next)};
    step_.next->step = step_.current->step.Next();
    lent_.reset();
  }
  return step_;
}

}  // namespace sluice
