// The part of World that plays the operator.

#include "tests/simulation/world.h"
#include "tests/testing/shard/change_settings.h"

namespace sluice {

void World::SetConsistency(const Consistency& consistency) {
  Begin([&] { return absl::StrCat("the operator sets ", Words(consistency)); });
  const uint64_t expected = oracle_->SetConsistency(consistency);
  const absl::StatusOr<Step> from = ChangeConsistency(shard(), consistency);
  ExpectReason(from.status(), Reason::kNone);
  if (from.ok()) Expect("first step of the new terms", from->value(), expected);
  End();
}

void World::SetLearningRate(double learning_rate) {
  Begin([&] { return absl::StrCat("the operator sets the learning rate ", learning_rate); });
  const uint64_t expected = oracle_->SetLearningRate(learning_rate);
  const absl::StatusOr<Step> from = ChangeLearningRate(shard(), learning_rate);
  ExpectReason(from.status(), Reason::kNone);
  if (from.ok()) Expect("first step of the new learning rate", from->value(), expected);
  End();
}

void World::Evict(const std::string& worker) {
  Begin([&] { return absl::StrCat("the operator evicts ", worker); });
  const Reason expected = oracle_->Evict(worker);
  ExpectReason(shard().Evict(worker), expected);
  End();
}

void World::Drain() {
  Spare();
  Begin([&] { return absl::StrCat("the operator drains the server"); });
  oracle_->Drain();
  shard().Drain();
  End();
}

}  // namespace sluice
