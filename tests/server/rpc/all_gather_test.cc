// Exchanges of bytes between the processes of a launch, over real gRPC.

#include "server/rpc/all_gather.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Exchanged = absl::StatusOr<std::vector<std::string>>;

v1::AllGatherRequest Given(uint32_t rank, uint32_t size, uint64_t number, const std::string& data,
                           uint64_t nonce = 0) {
  v1::AllGatherRequest request;
  request.set_rank(rank);
  request.set_size(size);
  request.set_number(number);
  request.set_data(data);
  request.set_process_nonce(nonce == 0 ? 100 + rank : nonce);
  request.mutable_wait()->set_seconds(30);
  return request;
}

v1::AllGatherRequest Impatient(v1::AllGatherRequest request) {
  request.mutable_wait()->set_seconds(0);
  request.mutable_wait()->set_nanos(1000000);
  return request;
}

Exchanged Call(ServerWorld& world, const v1::AllGatherRequest& request) {
  v1::AllGatherResponse answer;
  const auto context = world.Context();
  const absl::Status end = FromGrpcStatus(world.stub().AllGather(context.get(), request, &answer));
  if (!end.ok()) return end;
  return std::vector<std::string>(answer.data().begin(), answer.data().end());
}

// The calls of all ranks at once, from the last rank to the first; returns their answers by rank.
std::vector<Exchanged> CallAll(ServerWorld& world,
                               const std::vector<v1::AllGatherRequest>& requests) {
  std::vector<Exchanged> answers(requests.size());
  std::vector<std::thread> calls;
  for (size_t i = requests.size(); i-- > 0;) {
    calls.emplace_back([&, i] { answers[i] = Call(world, requests[i]); });
  }
  for (std::thread& call : calls) call.join();
  return answers;
}

TEST(AllGatherTest, EachRankGetsWhatAllHaveGivenInTheirOrder) {
  ServerWorld world(Sync(1));
  for (uint64_t number : {1, 2, 3}) {
    std::vector<v1::AllGatherRequest> requests;
    for (uint32_t rank : {0, 1, 2}) {
      requests.push_back(Given(rank, 3, number, absl::StrCat(number, "-", rank)));
    }
    for (const Exchanged& answer : CallAll(world, requests)) {
      EXPECT_THAT(answer,
                  IsOkAndHolds(ElementsAre(absl::StrCat(number, "-0"), absl::StrCat(number, "-1"),
                                           absl::StrCat(number, "-2"))));
    }
  }
}

TEST(AllGatherTest, BytesOfAnyKindAndNoBytesAreGiven) {
  ServerWorld world(Sync(1));
  const std::string bytes("\0\xff\n", 3);
  EXPECT_THAT(CallAll(world, {Given(0, 2, 1, ""), Given(1, 2, 1, bytes)})[0],
              IsOkAndHolds(ElementsAre("", bytes)));
}

TEST(AllGatherTest, NamesTheRanksThatAreMissing) {
  ServerWorld world(Sync(1));
  EXPECT_THAT(Call(world, Impatient(Given(1, 8, 1, "x"))),
              HasCode(absl::StatusCode::kDeadlineExceeded,
                      HasSubstr("for rank 0, rank 2, rank 3, rank 4 and 3 more of 8")));
}

TEST(AllGatherTest, ARepeatedCallGetsTheSameAnswer) {
  ServerWorld world(Sync(1));
  EXPECT_THAT(Call(world, Impatient(Given(0, 2, 1, "first"))),
              HasCode(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 1 of 2")));
  EXPECT_THAT(Call(world, Given(1, 2, 1, "second")), IsOkAndHolds(ElementsAre("first", "second")));
  EXPECT_THAT(Call(world, Given(0, 2, 1, "first")), IsOkAndHolds(ElementsAre("first", "second")));
  EXPECT_THAT(Call(world, Given(1, 2, 1, "second")), IsOkAndHolds(ElementsAre("first", "second")));
}

TEST(AllGatherTest, ACallThatIsRepeatedEndsTheOneThatWaits) {
  ServerWorld world(Sync(1));
  Exchanged first;
  std::atomic<bool> ended{false};
  std::thread waits([&] {
    first = Call(world, Given(0, 2, 1, "a"));
    ended = true;
  });
  while (!ended) EXPECT_FALSE(Call(world, Impatient(Given(0, 2, 1, "a"))).ok());
  waits.join();
  EXPECT_THAT(first, HasCode(absl::StatusCode::kUnavailable, HasSubstr("a later call")));
  EXPECT_THAT(Call(world, Given(1, 2, 1, "b")), IsOkAndHolds(ElementsAre("a", "b")));
}

TEST(AllGatherTest, AProcessThatIsStartedAgainGetsNoAnswerOfTheOneBefore) {
  ServerWorld world(Sync(1));
  for (uint64_t number : {1, 2}) {
    CallAll(world, {Given(0, 2, number, "a"), Given(1, 2, number, "b")});
  }
  EXPECT_THAT(
      Call(world, Impatient(Given(1, 2, 1, "again", 7))),
      HasCode(absl::StatusCode::kDeadlineExceeded, HasSubstr("rank 0 (at its exchange 2) of 2")));
  EXPECT_THAT(Call(world, Given(1, 2, 3, "b")),
              IsError(Reason::kGatherLost, HasSubstr("another process has exchanged")));
}

TEST(AllGatherTest, TheNextLaunchBeginsAnew) {
  ServerWorld world(Sync(1));
  for (uint64_t number : {1, 2}) {
    CallAll(world, {Given(0, 2, number, "a"), Given(1, 2, number, "b")});
  }
  EXPECT_FALSE(Call(world, Impatient(Given(0, 2, 3, "old"))).ok());  // left behind
  for (uint64_t number : {1, 2, 3}) {
    for (const Exchanged& answer :
         CallAll(world, {Given(0, 2, number, "c", 8), Given(1, 2, number, "d", 9)})) {
      EXPECT_THAT(answer, IsOkAndHolds(ElementsAre("c", "d"))) << number;
    }
  }
}

TEST(AllGatherTest, BadRequestsAreNamed) {
  ServerWorld world(Sync(1));
  const auto bad = [](const std::string& what) {
    return IsError(Reason::kBadArgument, HasSubstr(what));
  };
  EXPECT_THAT(Call(world, Given(0, 2, 0, "")), bad("number is 0"));
  EXPECT_THAT(Call(world, Given(2, 2, 1, "")), bad("rank is 2 of 2"));
  EXPECT_THAT(Call(world, Given(0, 0, 1, "")), bad("rank is 0 of 0"));
  EXPECT_THAT(Call(world, Given(0, 65537, 1, "")), bad("65536"));
  v1::AllGatherRequest patient = Given(0, 1, 1, "");
  patient.mutable_wait()->set_seconds(3601);
  EXPECT_THAT(Call(world, patient), bad("at most an hour"));
  patient.mutable_wait()->set_seconds(-1);
  EXPECT_THAT(Call(world, patient), bad("wait is -1s"));
  EXPECT_THAT(Call(world, Given(0, 1, 1, "")), IsOkAndHolds(ElementsAre("")));
  EXPECT_THAT(Call(world, Given(0, 1, 3, "")), bad("the latest of rank 0 was 1"));
}

TEST(AllGatherTest, TheBytesOfAllAreBounded) {
  Gatherings gatherings;
  const auto nobody = [](const auto&) {};
  const std::string half(Gatherings::kMostBytes / 2, 'x');
  EXPECT_THAT(gatherings.Add(Given(0, 3, 1, half), nobody), IsOk());
  EXPECT_THAT(gatherings.Add(Given(0, 3, 1, half), nobody), IsOk());
  EXPECT_THAT(gatherings.Add(Given(1, 3, 1, half), nobody), IsOk());
  EXPECT_THAT(gatherings.Add(Given(2, 3, 1, "x"), nobody),
              IsError(Reason::kBadArgument, HasSubstr("at most 3145728")));
  EXPECT_THAT(gatherings.Add(Given(2, 3, 1, ""), nobody), IsOk());
  EXPECT_THAT(gatherings.Add(Given(0, 3, 1, half), nobody), IsOk()) << "whose answer was lost";
}

TEST(AllGatherTest, WhatIsUnderWayIsBounded) {
  Gatherings gatherings;
  const auto nobody = [](const auto&) {};
  std::vector<uint64_t> ids;
  for (uint32_t i = 0; i < Gatherings::kMostExchanges; ++i) {
    const auto id = gatherings.Add(Given(i, 100, 10 + i, "x"), nobody);
    ASSERT_THAT(id, IsOk());
    ids.push_back(*id);
  }
  EXPECT_THAT(gatherings.Add(Given(50, 100, 60, "x"), nobody),
              IsError(Reason::kBadArgument, HasSubstr("16 exchanges are under way")));
  EXPECT_TRUE(gatherings.Cancel(ids[3]));
  EXPECT_FALSE(gatherings.Cancel(ids[3]));
  EXPECT_THAT(gatherings.Add(Given(50, 100, 60, "x"), nobody), IsOk());
}

}  // namespace
}  // namespace sluice
