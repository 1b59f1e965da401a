#include "server/admission/held_answers.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

void Fail(HeldAnswer& held, const absl::Status& why, Completions* completions) {
  completions->Add([tell = std::move(held.tell), why] { tell(why); });
}

}  // namespace

void HeldAnswers::BeginJournal(Step latest) {
  published_ = settled_ = latest;
  durable_ = latest;
}

void HeldAnswers::Add(Step step, HeldAnswer answer, Completions* completions) {
  if (!ended_.ok()) return Fail(answer, ended_, completions);
  held_.emplace(step, std::move(answer));
}

void HeldAnswers::OnPublished(Step step, Completions* completions) {
  published_ = step;
  Settle(completions);
}

void HeldAnswers::OnDurable(Step step, Completions* completions) {
  if (!has_journal()) return;
  durable_ = std::max(*durable_, step);
  Settle(completions);
}

void HeldAnswers::Settle(Completions* completions) {
  settled_ = std::min(durable_.value_or(published_), published_);
  const auto end = held_.upper_bound(settled_);
  for (auto it = held_.begin(); it != end; ++it) {
    completions->Add([held = std::move(it->second)] { held.tell(held.outcome); });
  }
  held_.erase(held_.begin(), end);
}

void HeldAnswers::FailSome(Step step, absl::FunctionRef<bool(HeldAnswer&)> fails,
                           const absl::Status& why, Completions* completions) {
  const auto [begin, end] = held_.equal_range(step);
  for (auto it = begin; it != end;) {
    const auto held = it++;
    if (!fails(held->second)) continue;
    Fail(held->second, why, completions);
    held_.erase(held);
  }
}

void HeldAnswers::FailAll(const absl::Status& why, Completions* completions) {
  for (auto& held : std::exchange(held_, {})) Fail(held.second, why, completions);
}

void HeldAnswers::EndJournal(const absl::Status& why, Completions* completions) {
  if (!has_journal()) return;
  ended_ = why;
  FailAll(why, completions);
}

std::vector<SessionId> HeldAnswers::Sessions() const {
  std::vector<SessionId> sessions;
  for (const auto& held : held_) sessions.push_back(held.second.session);
  return sessions;
}

}  // namespace sluice
