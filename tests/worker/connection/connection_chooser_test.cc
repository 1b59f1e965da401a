#include "worker/connection/connection_chooser.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr uint64_t kBytes = 100000000;

// Pushes until it settles, over a network on which `rate(n)` bytes a second go through n
// connections.
int Settle(ConnectionChooser& chooser, const std::function<double(int)>& rate) {
  for (int i = 0; i < 100; ++i) {
    const double seconds = static_cast<double>(kBytes) / rate(chooser.count());
    EXPECT_TRUE(chooser.measures());
    if (chooser.NoteTransfer(chooser.count(), {kBytes, absl::Seconds(seconds)})) {
      EXPECT_FALSE(chooser.measures());
      return chooser.count();
    }
  }
  ADD_FAILURE() << "not settled after 100 pushes";
  return 0;
}

TEST(ConnectionChooserTest, StaysWithOneThatFillsTheLink) {
  ConnectionChooser chooser(8);
  EXPECT_EQ(Settle(chooser, [](int) { return 1e9; }), 1);
  EXPECT_EQ(chooser.rate(), 1e9);
}

TEST(ConnectionChooserTest, StaysWithOneIfMoreAreSlower) {
  ConnectionChooser chooser(8);
  EXPECT_EQ(Settle(chooser, [](int count) { return 1e9 / count; }), 1);
}

TEST(ConnectionChooserTest, TakesAsManyAsEachIsHeldBackAlone) {
  ConnectionChooser chooser(8);
  EXPECT_EQ(Settle(chooser, [](int count) { return 1e8 * count; }), 8);
  EXPECT_DOUBLE_EQ(chooser.rate(), 8e8);
  EXPECT_DOUBLE_EQ(chooser.rate_of_one(), 1e8);
}

TEST(ConnectionChooserTest, StopsWhereTheLinkIsFull) {
  ConnectionChooser chooser(16);
  EXPECT_EQ(Settle(chooser, [](int count) { return std::min(1e8 * count, 4e8); }), 4);
}

TEST(ConnectionChooserTest, TakesNoMoreForALittleGain) {
  ConnectionChooser chooser(8);
  EXPECT_EQ(Settle(chooser, [](int count) { return count == 1 ? 1e8 : 1.14e8; }), 1);
}

TEST(ConnectionChooserTest, NeverUsesMoreThanItMay) {
  ConnectionChooser chooser(3);
  EXPECT_EQ(Settle(chooser,
                   [](int count) {
                     EXPECT_LE(count, 3);
                     return 1e8 * count;
                   }),
            2);
}

TEST(ConnectionChooserTest, DoesNotCountATrialsFirstTransfer) {
  ConnectionChooser chooser(2);
  int pushes = 0;
  // Through one connection only the first push is fast, through two all but that.
  const auto rate = [&](int count) {
    const bool first = pushes++ % ConnectionChooser::kTransfers == 0;
    return first == (count == 1) ? 1e9 : 1e8;
  };
  EXPECT_EQ(Settle(chooser, rate), 2);
}

TEST(ConnectionChooserTest, GoesBackIfThereAreNoMore) {
  ConnectionChooser chooser(8);
  while (chooser.count() == 1) {
    ASSERT_FALSE(chooser.NoteTransfer(1, {kBytes, absl::Seconds(1)}));
  }
  EXPECT_TRUE(chooser.NoteTransfer(1, {kBytes, absl::Seconds(1)}));
  EXPECT_EQ(chooser.count(), 1);
  EXPECT_FALSE(chooser.measures());
}

TEST(ConnectionChooserTest, TellsOnceThatItHasSettled) {
  ConnectionChooser chooser(2);
  EXPECT_EQ(Settle(chooser, [](int) { return 1e9; }), 1);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(chooser.NoteTransfer(1, {kBytes, absl::Seconds(1e-3)}));
  EXPECT_EQ(chooser.count(), 1);
}

}  // namespace
}  // namespace sluice
