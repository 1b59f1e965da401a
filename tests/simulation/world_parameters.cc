// The checks of the parameters that World makes after every event.

#include <cmath>

#include "tests/simulation/world.h"

namespace sluice {

void World::CheckParameters() {
  const auto latest = servers_->Latest();
  const std::shared_ptr<const Snapshot>& snapshot = latest.front();
  const bool any = snapshot != nullptr && snapshot->values.size() > 0;
  Expect("initialized", any, oracle_->initialized());
  if (!any || !ok()) return;
  const uint64_t step = snapshot->step.value();
  if (step != step_ && step != step_ + 1) {
    Fail(absl::StrCat("step (rule 4): it went from ", step_, " to ", step));
  }
  Expect("step (rules 4 and 7)", step, oracle_->step());
  for (const auto& other : latest) {
    if (ok()) Expect("step of another server", other == nullptr ? 0 : other->step.value(), step);
  }
  if (!ok()) return;
  // With several servers vectors are long. CheckHeld() finds out whether a snapshot changes.
  if (latest.size() > 1 && latest == latest_) return;
  latest_ = latest;
  const Values vector = servers_->Joined(latest);
  CompareParameters(vector, step);
  const std::string rows = twins_.Compare(latest, vector);
  if (!rows.empty()) Fail(absl::StrCat("atomic (rule 1): step ", step, ": ", rows));
}

void World::CompareParameters(const Values& found, uint64_t step) {
  const Values& expected = oracle_->published().back();
  for (size_t i = 0; i < found.size(); ++i) {
    const float tolerance = step == step_ ? 0 : oracle_->tolerance()[i];
    if (std::abs(found[i] - expected[i]) <= tolerance) continue;
    Fail(absl::StrCat("atomic (rules 1, 4): parameters of step ", step, " are ", Words(found),
                      ", expected ", Words(expected)));
  }
  step_ = step;
  oracle_->Correct(found);
}

}  // namespace sluice
