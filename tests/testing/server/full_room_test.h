// Tests of a server that lets in no push but that of the lowest rank.

#ifndef SLUICE_TESTS_TESTING_SERVER_FULL_ROOM_TEST_H_
#define SLUICE_TESTS_TESTING_SERVER_FULL_ROOM_TEST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/wire/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {

// Workers "a" to "d" in sync, with three parameters of 10. The in-flight limit is three vectors.
// The pushes of "b" and "c", of which one element has arrived, hold two. The third is reserved for
// "a", whose rank is the lowest that the step waits for. Work is done on threads, as in a server.
class FullRoomTest : public ::testing::Test {
 protected:
  FullRoomTest()
      : world_(WithLittleRoom(), ParametersOnly(3), "", {}, BuiltinTransforms(),
               Executors::OnThreads()) {
    for (const char* name : {"a", "b", "c", "d"}) EXPECT_THAT(world_.Join(name), IsOk());
    EXPECT_THAT(world_.Initialize("a", {10, 10, 10}), IsOk());
    for (const char* name : {"b", "c"}) {
      inside_[name] = world_.OpenPush();
      inside_[name]->Write(HeaderOf(world_.NextHeader(name, 0)));
      inside_[name]->Write(GradientOf(0, {1}));
      EXPECT_TRUE(world_.Await([&] { return BytesOf(name) == 4; }));
    }
  }

  // Sends the rest of the push of "b" or "c", whose gradient is then 1, 1, 1.
  absl::StatusOr<PushOutcome> FinishPushOf(const std::string& worker) {
    inside_[worker]->Write(GradientOf(1, {1, 1}));
    inside_[worker]->End();
    return AnswerTo(*inside_[worker]);
  }
  static absl::StatusOr<PushOutcome> AnswerTo(PushStream& push) {
    const auto answer = push.Answer();
    if (!answer.ok()) return answer.status();
    return FromProto(*answer);
  }

  // Waits until so many pushes have begun and not ended, those that wait among them.
  bool AwaitInProgress(uint64_t pushes) {
    return world_.Await([&] { return world_.shard().Describe().counters.in_progress == pushes; });
  }
  uint64_t BytesOf(const std::string& worker) {
    for (const AwaitedWorker& awaited : world_.shard().Describe().current.awaited) {
      if (awaited.worker == worker) return awaited.bytes_arrived;
    }
    return 0;
  }

  ServerWorld world_;
  std::map<std::string, std::unique_ptr<PushStream>> inside_;

 private:
  static ShardOptions WithLittleRoom() {
    ShardOptions options = Sync(4);
    options.max_in_flight_bytes = 0;  // the fewest fit always
    return options;
  }
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SERVER_FULL_ROOM_TEST_H_
