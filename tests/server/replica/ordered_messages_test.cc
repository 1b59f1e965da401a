#include "server/replica/ordered_messages.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Kept(const OrderedSender<std::string>& sender) {
  std::vector<std::string> kept;
  for (const auto& message : sender.kept()) kept.push_back(message.message);
  return kept;
}

TEST(OrderedMessagesTest, AreNumberedFromOne) {
  OrderedSender<std::string> sender;
  EXPECT_EQ(sender.Add("a").number, 1u);
  EXPECT_EQ(sender.Add("b").number, 2u);
}

TEST(OrderedMessagesTest, AreKeptUntilTheyAreAcknowledged) {
  OrderedSender<std::string> sender;
  for (const char* const message : {"a", "b", "c"}) sender.Add(message);
  sender.Acknowledge(2);
  EXPECT_THAT(Kept(sender), ElementsAre("c"));
  sender.Acknowledge(1);  // late
  EXPECT_THAT(Kept(sender), ElementsAre("c"));
  EXPECT_EQ(sender.Add("d").number, 4u);
  sender.Acknowledge(4);
  EXPECT_THAT(Kept(sender), IsEmpty());
}

TEST(OrderedMessagesTest, AreTakenOnceAndInOrder) {
  OrderedReceiver receiver;
  EXPECT_EQ(receiver.taken(), 0u);
  EXPECT_FALSE(receiver.Take(2));
  EXPECT_TRUE(receiver.Take(1));
  EXPECT_FALSE(receiver.Take(1));
  EXPECT_TRUE(receiver.Take(2));
  EXPECT_FALSE(receiver.Take(1));
  EXPECT_EQ(receiver.taken(), 2u);
}

}  // namespace
}  // namespace sluice
