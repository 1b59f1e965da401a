#include "server/state/saved_stripes.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(SavedStripesTest, AreCompleteWhenEachServerHasSavedOnce) {
  SavedStripes stripes(2);
  stripes.Set(2, 20);
  EXPECT_FALSE(stripes.complete());
  EXPECT_TRUE(stripes.Set(1, 10));
  EXPECT_FALSE(stripes.Set(1, 11));
  EXPECT_TRUE(stripes.complete());
  EXPECT_THAT(stripes.Await(), IsOkAndHolds(ElementsAre(10, 20)));
}

TEST(SavedStripesTest, FailWithTheFirstErrorOfAServerAndNameIt) {
  SavedStripes stripes(3);
  stripes.Set(2, absl::ResourceExhaustedError("the disk is full"));
  EXPECT_FALSE(stripes.complete());
  stripes.Set(3, absl::UnavailableError("later"));
  EXPECT_EQ(stripes.Await().status(),
            absl::ResourceExhaustedError("server 2 of 4 cannot save its part: the disk is full"));
}

TEST(SavedStripesTest, TheWaitEndsWhenNobodyIsWaitedFor) {
  SavedStripes stripes(1);
  std::thread stops([&] { stripes.Stop(absl::UnavailableError("down")); });
  EXPECT_EQ(stripes.Await().status(), absl::UnavailableError("down"));
  stops.join();
}

TEST(SavedStripesTest, WhatIsSavedStaysSaved) {
  SavedStripes stripes(1);
  stripes.Set(1, 10);
  stripes.Stop(absl::UnavailableError("down"));
  EXPECT_THAT(stripes.Await(), IsOkAndHolds(ElementsAre(10)));
}

}  // namespace
}  // namespace sluice
