// What the history keeps, and how coarse it is.

#include "server/web/history/history.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kStep = 1;
constexpr size_t kRate = 2;
constexpr size_t kWaiting = 16;

HistorySample At(double time, double step) {
  HistorySample sample;
  sample.values[kTime] = time;
  sample.values[kStep] = step;
  return sample;
}

std::vector<double> Column(const History& history, size_t column) {
  std::vector<double> values;
  for (const HistorySample& row : history.Rows()) values.push_back(row.values[column]);
  return values;
}

TEST(HistoryTest, HasEachSecondOfTheLastFiveMinutes) {
  History history;
  for (int i = 0; i < 300; ++i) history.Add(At(6000 + i, i));
  const std::vector<double> steps = Column(history, kStep);
  ASSERT_THAT(steps, SizeIs(300));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(steps[static_cast<size_t>(i)], i);
}

TEST(HistoryTest, GetsCoarserWithAge) {
  History history;
  constexpr int kSeconds = 4000;
  for (int i = 0; i < kSeconds; ++i) history.Add(At(6000 + i, i));
  const std::vector<double> times = Column(history, kTime);
  // 6 rows of a minute before the hour, then rows of 10 s, then 301 of 1 s, with the open one.
  ASSERT_THAT(times, SizeIs(6 + 330 + 301));
  EXPECT_EQ(times[0], 6059);
  EXPECT_EQ(times[1] - times[0], 60);
  EXPECT_EQ(times[7] - times[6], 10);
  EXPECT_EQ(times.back(), 9999);
  for (size_t i = 1; i < times.size(); ++i) EXPECT_LT(times[i - 1], times[i]);
}

TEST(HistoryTest, IsBounded) {
  History history;
  for (int i = 0; i < 3000; ++i) history.Add(At(600.0 * i, i));
  EXPECT_LE(history.Rows().size(), size_t{300 + 360 + 720 + 1008 + 1});
  for (int i = 0; i < 1000; ++i) history.Add({0, 0, "joined", std::string(1000, 'x')});
  EXPECT_THAT(history.events(), SizeIs(History::kMostEvents));
  EXPECT_THAT(history.events().back().text, SizeIs(History::kMostEventBytes));
}

TEST(HistoryTest, ACoarseRowHasTheLastCounterTheMeanGaugeAndTheLargestPeak) {
  History history;
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const double rates[] = {1, kNothing, 3};
  const double waits[] = {5, 9, 2};
  for (int i = 0; i < 3; ++i) {
    HistorySample sample = At(i, 100 + i);
    sample.values[kRate] = rates[i];
    sample.values[kWaiting] = waits[i];
    sample.losses[0] = static_cast<float>(i + 1);
    history.Add(sample);
  }
  for (int i = 0; i < 400; ++i) history.Add(At(10 + i, 200));  // the first row is of 10 s now
  const HistorySample row = history.Rows().front();
  EXPECT_EQ(row.values[kStep], 102);
  EXPECT_EQ(row.values[kRate], 2);
  EXPECT_EQ(row.values[kWaiting], 9);
  EXPECT_EQ(row.losses[0], 2);
}

TEST(HistoryTest, KeepsTheLaneOfAWorkerAndGivesThatOfOneThatIsGoneToAnother) {
  History history;
  absl::flat_hash_set<std::string> alive;
  for (size_t i = 0; i < kLanes; ++i) {
    alive.insert(absl::StrCat(i));
    EXPECT_EQ(history.LaneOf(absl::StrCat(i), alive), i);
  }
  EXPECT_EQ(history.LaneOf("3", alive), 3);
  alive.insert("late");
  EXPECT_EQ(history.LaneOf("late", alive), kLanes);
  HistorySample sample = At(1, 1);
  sample.losses.fill(0.5);
  sample.activities.fill(Activity::kWaits);
  history.Add(sample);
  alive.erase("3");
  EXPECT_EQ(history.LaneOf("late", alive), 3);
  const HistorySample row = history.Rows().front();
  EXPECT_TRUE(std::isnan(row.losses[3]));
  EXPECT_EQ(row.activities[3], Activity::kNone);
  EXPECT_EQ(row.losses[4], 0.5);
}

TEST(HistoryTest, OfCheckpointsInARowOnlyTheLastOneStays) {
  History history;
  history.Add({1, 1, "joined", "a"});
  history.Add({2, 2, "checkpoint", "first"});
  history.Add({3, 3, "checkpoint", "second"});
  history.Add({4, 4, "left", "a"});
  history.Add({5, 5, "checkpoint", "third"});
  EXPECT_THAT(history.events(),
              ElementsAre(Field(&HistoryEvent::text, "a"), Field(&HistoryEvent::text, "second"),
                          Field(&HistoryEvent::text, "a"), Field(&HistoryEvent::text, "third")));
}

TEST(HistoryTest, IsEmptyAtFirst) {
  EXPECT_THAT(History().Rows(), IsEmpty());
  EXPECT_THAT(History().events(), IsEmpty());
}

}  // namespace
}  // namespace sluice
