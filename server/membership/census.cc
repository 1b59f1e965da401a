#include "server/membership/census.h"

#include <vector>

namespace sluice {
namespace {

void AddClock(std::map<uint64_t, uint32_t>& clocks, uint64_t clock) { ++clocks[clock]; }

void RemoveClock(std::map<uint64_t, uint32_t>& clocks, uint64_t clock) {
  const auto found = clocks.find(clock);
  if (--found->second == 0) clocks.erase(found);
}

}  // namespace

Census::Tally Census::TallyOf(const SessionRecord& record) const {
  Tally tally;
  tally.role = record.role;
  tally.open = record.alive();
  tally.known = record.alive() || record.joined;
  tally.of_step = record.contributed == step_ || record.IsPartOf(step_);
  if (record.role != SessionRole::kWorker) return tally;
  tally.connected = record.joined && record.presence == Presence::kPresent;
  tally.joined = record.joined && record.alive();
  tally.evicted = record.joined && record.presence == Presence::kEvicted && !record.banned;
  if (!record.alive()) return tally;
  tally.waits = record.IsPartOf(step_) || record.active_from > step_;
  tally.member = record.IsMemberOf(step_);
  tally.missing = record.IsMissingFrom(step_);
  if (!tally.member) tally.active_from = record.active_from;
  tally.excused = record.excused;
  tally.clock = record.clock;
  return tally;
}

void Census::Count(const SessionRecord& record) {
  Tally& tally = tallies_[&record];
  Remove(record, tally);
  tally = TallyOf(record);
  Add(record, tally);
}

void Census::Forget(const SessionRecord& record) {
  const auto found = tallies_.find(&record);
  if (found == tallies_.end()) return;
  Remove(record, found->second);
  tallies_.erase(found);
}

void Census::Add(const SessionRecord& record, Tally& tally) {
  AddToTotals(tally, 1);
  if (tally.missing) tally.place = missing_.insert(record.rank()).first;
  if (tally.of_step) of_step_.insert(&record);
  if (tally.active_from.has_value()) joining_.emplace(*tally.active_from, &record);
  if (tally.role != SessionRole::kWorker || !tally.open) return;
  AddClock(tally.excused ? excused_clocks_ : clocks_, tally.clock);
}

void Census::Remove(const SessionRecord& record, const Tally& tally) {
  AddToTotals(tally, -1);
  if (tally.missing) missing_.erase(tally.place);
  if (tally.of_step) of_step_.erase(&record);
  if (tally.active_from.has_value()) {
    auto joins = joining_.lower_bound(*tally.active_from);
    while (joins->second != &record) ++joins;
    joining_.erase(joins);
  }
  if (tally.role != SessionRole::kWorker || !tally.open) return;
  RemoveClock(tally.excused ? excused_clocks_ : clocks_, tally.clock);
}

// `one` is 1, or -1 of unsigned arithmetic.
void Census::AddToTotals(const Tally& tally, uint32_t one) {
  Totals& totals = totals_[Place(tally.role)];
  totals.open += tally.open ? one : 0;
  totals.known += tally.known ? one : 0;
  workers_.connected += tally.connected ? one : 0;
  workers_.open += tally.joined ? one : 0;
  workers_.evicted += tally.evicted ? one : 0;
  members_ += tally.member ? one : 0;
  waiting_ += tally.waits ? one : 0;
}

void Census::BeginStep(Step step) {
  std::vector<const SessionRecord*> changed;
  if (step == step_.Next()) {
    changed.assign(of_step_.begin(), of_step_.end());
    for (auto it = joining_.begin(); it != joining_.end() && it->first <= step; ++it) {
      changed.push_back(it->second);
    }
  } else {
    for (const auto& entry : tallies_) changed.push_back(entry.first);
  }
  step_ = step;
  for (const SessionRecord* record : changed) Count(*record);
}

absl::optional<Rank> Census::first_missing() const {
  if (missing_.empty()) return absl::nullopt;
  return *missing_.begin();
}

uint64_t Census::slowest_clock() const {
  if (!clocks_.empty()) return clocks_.begin()->first;
  return excused_clocks_.empty() ? 0 : excused_clocks_.rbegin()->first;
}

}  // namespace sluice
