#include "server/membership/census.h"

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int kRecords = 9;
constexpr int kChanges = 3000;

// What a census must say, found by looking at all records.
class Look {
 public:
  Look(const std::vector<SessionRecord>& records, Step step) {
    for (const SessionRecord& record : records) At(record, step);
    if (!clocks_.empty()) {
      slowest = *std::min_element(clocks_.begin(), clocks_.end());
    } else if (!excused_.empty()) {
      slowest = *std::max_element(excused_.begin(), excused_.end());
    }
  }

  uint32_t open_workers = 0;
  uint32_t open_observers = 0;
  uint32_t known_workers = 0;
  uint32_t known_observers = 0;
  uint32_t connected = 0;
  uint32_t evicted = 0;
  uint32_t members = 0;
  uint32_t missing = 0;
  bool all_wait = true;
  absl::optional<Rank> first_missing;
  uint64_t slowest = 0;
  std::vector<std::string> contributors;

 private:
  void At(const SessionRecord& record, Step step) {
    const bool worker = record.role == SessionRole::kWorker;
    if (record.alive()) ++(worker ? open_workers : open_observers);
    if (record.alive() || record.joined) ++(worker ? known_workers : known_observers);
    if (record.contributed == step) contributors.push_back(record.worker);
    if (worker) AtWorker(record, step);
  }

  void AtWorker(const SessionRecord& record, Step step) {
    if (record.joined && record.presence == Presence::kPresent) ++connected;
    if (record.joined && record.presence == Presence::kEvicted && !record.banned) ++evicted;
    if (!record.alive()) return;
    all_wait = all_wait && (record.IsPartOf(step) || record.active_from > step);
    (record.excused ? excused_ : clocks_).push_back(record.clock);
    if (record.active_from > step) return;
    ++members;
    if (record.contributed == step) return;
    ++missing;
    if (!first_missing.has_value() || record.rank() < *first_missing) first_missing = record.rank();
  }

  std::vector<uint64_t> clocks_;
  std::vector<uint64_t> excused_;
};

class CensusTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  CensusTest() : random_(GetParam()), records_(kRecords) {
    records_[0].role = SessionRole::kObserver;
    for (int i = 0; i < kRecords; ++i) records_[i].worker = std::string(1, "abcdefghi"[i]);
  }

  uint64_t Draw(uint64_t sides) { return random_() % sides; }

  void ChangeSomething(SessionRecord& record) {
    const std::vector<std::function<void()>> changes = {
        [&] { record.presence = static_cast<Presence>(Draw(4)); },
        [&] { record.joined = !record.joined; },
        [&] { record.banned = !record.banned; },
        [&] { record.excused = !record.excused; },
        [&] { record.clock = Draw(4); },
        [&] { record.index = static_cast<uint32_t>(Draw(20)); },
        [&] { record.active_from = Step(step_.value() + Draw(3)); },
        [&] {
          record.Contribute(step_);
          sequence_ = sequence_.Next();
          record.answers[sequence_].part_of = step_;
        }};
    changes[Draw(changes.size())]();
  }

  // Changes and counts a record, forgets one, or begins a step.
  void Happen() {
    SessionRecord& record = records_[Draw(kRecords)];
    if (Draw(12) == 0) {
      step_ = Draw(4) == 0 ? Step(step_.value() + 5) : step_.Next();
      census_.BeginStep(step_);
    } else if (Draw(12) == 0) {
      census_.Forget(record);
      counted_.erase(&record);
    } else {
      ChangeSomething(record);
      census_.Count(record);
      counted_.insert(&record);
    }
  }

  Look LookAtAll() const {
    std::vector<SessionRecord> counted;
    for (const SessionRecord* record : counted_) counted.push_back(*record);
    return Look(counted, step_);
  }

  std::vector<std::string> Contributors() const {
    std::vector<std::string> names;
    for (const SessionRecord* record : census_.of_step()) names.push_back(record->worker);
    return names;
  }

  std::mt19937 random_;
  Step step_;
  Sequence sequence_;
  std::vector<SessionRecord> records_;
  std::set<const SessionRecord*> counted_;
  Census census_;
};

TEST_P(CensusTest, SaysWhatALookAtAllRecordsFinds) {
  for (int i = 0; i < kChanges; ++i) {
    Happen();
    const Look found = LookAtAll();
    ASSERT_EQ(census_.open(SessionRole::kWorker), found.open_workers) << i;
    ASSERT_EQ(census_.open(SessionRole::kObserver), found.open_observers) << i;
    ASSERT_EQ(census_.known(SessionRole::kWorker), found.known_workers) << i;
    ASSERT_EQ(census_.known(SessionRole::kObserver), found.known_observers) << i;
    ASSERT_EQ(census_.workers().connected, found.connected) << i;
    ASSERT_EQ(census_.workers().evicted, found.evicted) << i;
    ASSERT_EQ(census_.members(), found.members) << i;
    ASSERT_EQ(census_.missing(), found.missing) << i;
    ASSERT_EQ(census_.first_missing(), found.first_missing) << i;
    ASSERT_EQ(census_.all_wait(), found.all_wait) << i;
    ASSERT_EQ(census_.slowest_clock(), found.slowest) << i;
    ASSERT_THAT(Contributors(), ::testing::UnorderedElementsAreArray(found.contributors)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CensusTest, ::testing::Range(0u, 8u));

}  // namespace
}  // namespace sluice
