// The bytes of a history's file: back, damaged, cut, foreign.

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/web/history/history.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::SizeIs;

History Filled() {
  History history;
  history.BeginJob("job <1>");
  history.LaneOf("worker <0>", {});
  for (int i = 0; i < 700; ++i) {
    HistorySample sample;
    sample.values[kTime] = 5000 + i;
    sample.values[1] = i;
    sample.losses[0] = 1.5F;
    sample.activities[0] = Activity::kComputes;
    history.Add(sample);
  }
  history.Add({5000, 7, "joined", "worker <0>"});
  history.SetFacts({"async, quorum 1", "finished", 0.5, 0.25});
  return history;
}

TEST(HistoryFileTest, ComesBackWithAllRowsThatWereOver) {
  const History written = Filled();
  History read;
  ASSERT_THAT(read.Decode(written.Encode()), IsOk());
  EXPECT_EQ(read.Encode(), written.Encode());
  const std::vector<HistorySample> rows = read.Rows();
  ASSERT_THAT(rows, SizeIs(written.Rows().size() - 1));  // the second of now was not over
  EXPECT_EQ(rows.back().values[kTime], 5698);
  EXPECT_EQ(rows.back().losses[0], 1.5F);
  EXPECT_EQ(rows.back().activities[0], Activity::kComputes);
  EXPECT_EQ(read.lanes()[0], "worker <0>");
  EXPECT_EQ(read.facts().rules, "async, quorum 1");
  EXPECT_EQ(read.facts().loss, 0.25);
  ASSERT_THAT(read.events(), SizeIs(1));
  EXPECT_EQ(read.events().front().step, 7);
}

TEST(HistoryFileTest, TheFileOfAnotherJobIsForgottenWhenAJobBegins) {
  const std::string bytes = Filled().Encode();
  History read;
  ASSERT_THAT(read.Decode(bytes), IsOk());
  read.BeginJob("job <1>");
  EXPECT_EQ(read.Encode(), bytes);
  read.BeginJob("job <2>");
  EXPECT_THAT(read.Rows(), SizeIs(0));
  EXPECT_THAT(read.events(), SizeIs(0));
  EXPECT_EQ(read.lanes()[0], "");
}

TEST(HistoryFileTest, WhatTheFileHasOfTheFutureIsForgotten) {
  History written = Filled();  // from 5000 to 5699
  written.Add({5600, 8, "left", "worker <0>"});
  History read;
  ASSERT_THAT(read.Decode(written.Encode()), IsOk());
  HistorySample sample;
  for (const double time : {5500, 5501}) {  // the clock was set back
    sample.values[kTime] = time;
    read.Add(sample);
  }
  std::vector<double> times;
  for (const HistorySample& row : read.Rows()) times.push_back(row.values[kTime]);
  EXPECT_THAT(times, Contains(5499));
  EXPECT_EQ(times.back(), 5501);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  ASSERT_THAT(read.events(), SizeIs(1));
  EXPECT_EQ(read.events().front().kind, "joined");
}

TEST(HistoryFileTest, RefusesEveryCutAndLeavesTheHistoryAlone) {
  const std::string bytes = Filled().Encode();
  History read;
  for (size_t size = 0; size < bytes.size(); size += size < 100 ? 1 : 4999) {
    EXPECT_THAT(read.Decode(bytes.substr(0, size)), HasCode(absl::StatusCode::kDataLoss, _));
  }
  EXPECT_THAT(read.Rows(), SizeIs(0));
}

TEST(HistoryFileTest, RefusesEveryFlippedByte) {
  const std::string bytes = Filled().Encode();
  History read;
  for (size_t at = 0; at < bytes.size(); at += at < 100 ? 1 : 4999) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_THAT(read.Decode(flipped), HasCode(absl::StatusCode::kDataLoss, _)) << at;
  }
}

TEST(HistoryFileTest, RefusesMoreRowsThanItKeeps) {
  const std::string bytes = Filled().Encode();
  const size_t header = bytes.find('\n') + 1 + sizeof(uint64_t);
  const std::string job = bytes.substr(header, sizeof(uint64_t) + strlen("job <1>"));
  const std::string body = absl::StrCat(job, LittleEndian64(301));
  const std::string file = absl::StrCat(bytes.substr(0, header - sizeof(uint64_t)),
                                        LittleEndian64(Checksum(body)), body);
  History read;
  EXPECT_THAT(read.Decode(file), HasCode(absl::StatusCode::kDataLoss, "it has too many rows"));
}

TEST(HistoryFileTest, RefusesBytesAfterTheEnd) {
  History read;
  EXPECT_THAT(read.Decode(absl::StrCat(Filled().Encode(), "x")),
              HasCode(absl::StatusCode::kDataLoss, _));
}

}  // namespace
}  // namespace sluice
