// The part of World in which the servers of a job with a journal repeat the steps that all of them
// have, after they went back to a checkpoint.

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/simulation/world.h"

namespace sluice {

// ---- What the oracle expects ----

// The steps of the incarnation that ends. One that was made when a server died was not compared.
void World::KeepModelSteps() {
  for (const ModelStep& step : oracle_->journaled()) {
    ModelStep& kept = model_steps_[{step.incarnation, step.step}] = step;
    kept.parameters = oracle_->published().at(step.step);
    if (step.step > step_) kept.tolerance = oracle_->tolerance();
  }
}

// The server that has the fewest steps decides.
Step World::LastRepeated(const JobDisks::Checkpoint& checkpoint) {
  Step last = checkpoint.state.step;
  if (!scenario_.journal) return last;
  for (uint32_t server = 0; server < servers_->count(); ++server) {
    const auto found =
        disks_.of(server).journal().Following(checkpoint.key(), disks_.BegunSince(checkpoint));
    if (!found.ok()) {
      Fail(absl::StrCat("the journal of server ", server, ": ", found.status().message()));
      return last;
    }
    const Step end = found->empty() ? checkpoint.state.step : found->back()->step.step;
    last = server == 0 ? end : std::min(last, end);
  }
  return last;
}

void World::ExpectRepeated(const JobDisks::Checkpoint& checkpoint, Step last) {
  const auto found =
      disks_.of(0).journal().Following(checkpoint.key(), disks_.BegunSince(checkpoint));
  for (const DiskJournal::Record* const record : *found) {
    if (record->step.step > last) break;
    const ModelStep& step =
        model_steps_.at({record->step.incarnation.value(), record->step.step.value()});
    oracle_->Repeat(step);
    repeated_tolerance_ = step.tolerance;
  }
}

// ---- What the servers do ----

// Returns false if a server was killed meanwhile, or a rule is broken.
bool World::RepeatSteps(const LoadCheckpoint& load) {
  JoinTooEarly();
  const auto journaled = disks_.of(0).OpenJournal(load, scenario_.layout);
  if (!journaled.ok()) {
    Fail(std::string(journaled.status().message()));
    return false;
  }
  Step last = *journaled;
  absl::Status repeated;
  if (servers_->count() > 1) {
    const auto others = shard().durability().AwaitLoaded();
    repeated = others.status();
    if (others.ok()) last = std::min(last, others->step);
  }
  if (repeated.ok()) repeated = RepeatUpTo(last);
  servers_->Settle();
  if (interrupted()) return false;
  if (!repeated.ok()) Fail(absl::StrCat("a step cannot be repeated: ", repeated.message()));
  if (ok()) CheckRepeated();
  shard().durability().BeginIncarnation(load.begins);
  if (ok() && last > load.source.step) SaveRepeated();
  JoinTooEarly();
  return ok() && !interrupted();
}

absl::Status World::RepeatUpTo(Step last) {
  for (;;) {
    const DiskJournal::Record* const record = disks_.of(0).NextRecord();
    if (record == nullptr || record->step.step > last) return absl::OkStatus();
    const absl::Status repeated =
        shard().durability().Replay(record->step, record->sum, record->rows);
    if (!repeated.ok()) return repeated;
  }
}

// To the bit, unless nobody has seen the step before.
void World::CheckRepeated() {
  const auto latest = servers_->Latest();
  for (const auto& snapshot : latest) {
    Expect("step to which a server comes back", snapshot->step.value(), oracle_->step());
  }
  if (!ok()) return;
  const Values found = servers_->Joined(latest);
  const Values& expected = oracle_->published().back();
  const std::string rows = twins_.Compare(latest, found);
  if (!rows.empty()) Fail(absl::StrCat("a step that was repeated: ", rows));
  const Values& tolerance = repeated_tolerance_;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::abs(found[i] - expected[i]) <= (tolerance.empty() ? 0 : tolerance[i])) continue;
    return Fail(absl::StrCat("step ", oracle_->step(), " was repeated and is ", Words(found),
                             ", expected ", Words(expected)));
  }
  oracle_->Correct(found);
  step_ = oracle_->step();
}

// The disks may not have what was repeated: it is saved before anybody joins.
void World::SaveRepeated() {
  shard().durability().TakeCheckpoint([this](const auto& taken) {
    if (!interrupted()) ExpectReason(taken.status(), Reason::kNone);
    if (taken.ok()) disks_.Take(*taken, oracle_->Checkpoint());
  });
  servers_->WriteAll();
  if (ok() && !interrupted() && !disks_.WriteState()) {
    Fail("the steps that were repeated cannot be saved");
  }
}

}  // namespace sluice
