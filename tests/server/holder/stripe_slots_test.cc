#include "server/holder/stripe_slots.h"

#include <vector>

#include "common/base/parallel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

StripeExecutor AdamStripe(Parallel& parallel) {
  const Layout layout = ParametersOnly(3);
  return {layout, {AdamOptions()}, Stripes(layout.size(), 1), 0, parallel};
}

TEST(StripeSlotsTest, AreRestoredFromTheirCopies) {
  Serial serial;
  StripeExecutor from = AdamStripe(serial);
  const std::vector<OptimizerSlot> slots = from.slots();
  ASSERT_EQ(slots.size(), 2u);
  slots[1].values[2] = 7;
  const std::vector<SlotCheckpoint> copies = CopySlots(from, serial);
  slots[1].values[2] = 8;
  StripeExecutor to = AdamStripe(serial);
  ASSERT_THAT(RestoreSlots(copies, to, serial), IsOk());
  EXPECT_EQ(to.slots()[1].values[2], 7);
  EXPECT_EQ(to.slots()[0].values[2], 0);
}

TEST(StripeSlotsTest, OfAnotherOptimizerAreRefused) {
  Serial serial;
  StripeExecutor stripe = AdamStripe(serial);
  std::vector<SlotCheckpoint> slots = CopySlots(stripe, serial);
  slots[0].name = "velocity";
  EXPECT_THAT(RestoreSlots(slots, stripe, serial),
              HasCode(absl::StatusCode::kDataLoss, ::testing::HasSubstr("by name")));
  slots.pop_back();
  EXPECT_THAT(RestoreSlots(slots, stripe, serial),
              HasCode(absl::StatusCode::kDataLoss,
                      "the checkpoint has 1 optimizer slots; expected the 2 slots of its "
                      "optimizer, by name"));
}

}  // namespace
}  // namespace sluice
