#include "server/tables/row_history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kKey = 7;

// Adds a step that changes one bucket: before it, each of the rows was `before`, as step `touched`
// had left it.
void Add(RowHistory& history, uint64_t step, const std::vector<RowId>& ids, float before,
         uint64_t touched = 0) {
  auto past = std::make_shared<PastStep>();
  past->step = step;
  past->buckets.emplace_back(kKey, 1);
  PastRows& rows = past->buckets[0];
  PastMemory memory;
  memory.floats = FloatBuffer(ids.size());
  for (uint32_t i = 0; i < ids.size(); ++i) {
    PastRow row;
    row.id = ids[i];
    row.before = StoredAs::kRow;
    row.touched = touched;
    row.at = i;
    memory.rows.push_back(row);
    *memory.floats.from(i) = before;
  }
  rows.Own(std::move(memory));
  history.Add(past);
  rows.made = true;
  history.EndStep();
}

// What a row was at `step`; −1 if no later step has changed it.
float Find(const RowHistory& history, uint64_t step, RowId id) {
  float found = -1;
  history.Find(step, kKey, id,
               [&](const PastRows& rows, const PastRow& row) { found = rows.ElementsOf(row)[0]; });
  return found;
}

TEST(RowHistoryTest, KeepsNothingForTheLatestSnapshot) {
  RowHistory history;
  history.Hold(0);
  Add(history, 1, {5}, 10);
  history.Hold(1);
  EXPECT_EQ(history.size(), 1u);
  history.Release(0);
  EXPECT_EQ(history.size(), 0u);
  Add(history, 2, {5}, 11);
  history.Release(1);
  EXPECT_EQ(history.size(), 0u);
}

TEST(RowHistoryTest, TheFirstStepThatChangesARowHasKeptIt) {
  RowHistory history;
  for (uint64_t step = 0; step < 3; ++step) {
    history.Hold(step);
    Add(history, step + 1, {step, 9}, static_cast<float>(10 + step));
  }
  EXPECT_EQ(Find(history, 0, 9), 10);
  EXPECT_EQ(Find(history, 1, 9), 11);
  EXPECT_EQ(Find(history, 2, 9), 12);
  EXPECT_EQ(Find(history, 3, 9), -1);
  EXPECT_EQ(Find(history, 0, 2), 12);
  EXPECT_EQ(Find(history, 1, 0), -1);
}

TEST(RowHistoryTest, ASnapshotThatLivesLongKeepsFewCopiesOfARow) {
  constexpr uint64_t kSteps = 1000;
  constexpr uint64_t kIds = 64;
  RowHistory history;
  history.Hold(0);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    history.Hold(step - 1);
    Add(history, step, {step % kIds, kIds}, static_cast<float>(step));
    history.Release(step - 1);
  }
  EXPECT_LE(history.size(), 10u);
  EXPECT_LE(history.rows(), 3 * (kIds + 1));
  for (uint64_t id = 1; id < kIds; ++id) EXPECT_EQ(Find(history, 0, id), id);
  EXPECT_EQ(Find(history, 0, kIds), 1);
}

TEST(RowHistoryTest, StepsWithASnapshotBetweenThemStayApart) {
  RowHistory history;
  history.Hold(0);
  for (uint64_t step = 1; step <= 50; ++step) {
    if (step == 21) history.Hold(20);
    Add(history, step, {1, 2}, static_cast<float>(step));
  }
  EXPECT_EQ(Find(history, 0, 1), 1);
  EXPECT_EQ(Find(history, 20, 1), 21);
  history.Release(0);
  EXPECT_EQ(Find(history, 20, 1), 21);
  history.Release(20);
  EXPECT_EQ(history.size(), 0u);
}

TEST(RowHistoryTest, ListsTheIdsThatLaterStepsChangedAndThatWereTouchedBetween) {
  RowHistory history;
  history.Hold(5);
  history.Hold(6);
  Add(history, 6, {3}, 0, 2);
  Add(history, 7, {4, 6}, 0, 4);
  const auto ids_of = [&](uint64_t step, uint64_t after, uint64_t key = kKey) {
    std::vector<RowId> ids;
    history.AppendIds(step, after, key, &ids);
    return ids;
  };
  EXPECT_THAT(ids_of(5, 1), ElementsAre(3, 4, 6));
  EXPECT_THAT(ids_of(5, 2), ElementsAre(4, 6));
  EXPECT_THAT(ids_of(6, 1), ElementsAre(4, 6));
  EXPECT_THAT(ids_of(6, 4), IsEmpty());
  EXPECT_THAT(ids_of(3, 1), ElementsAre(3));  // the others were touched later
  EXPECT_THAT(ids_of(5, 1, kKey + 1), IsEmpty());
}

}  // namespace
}  // namespace sluice
