#include "tests/testing/shard/shard_client.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {

Answer<PushOutcome> ShardClient::Push(uint64_t step, float value,
                                      const std::function<void()>& whole) {
  ++sequence_;
  return Repeat(step, value, whole);
}

Answer<PushOutcome> ShardClient::Repeat(uint64_t step, float value,
                                        const std::function<void()>& whole) {
  PushHeader header;
  header.session = SessionId(session_);
  header.sequence = Sequence(sequence_);
  header.step = Step(step);
  header.incarnation = Incarnation(1);
  Answer<PushOutcome> answer;
  // The client may be gone when it is let in.
  shard_.store().BeginPush(
      header, [&shard = shard_, value, whole, answer](absl::StatusOr<PushStart> start) mutable {
        if (!start.ok()) {
          answer.Callback()(start.status());
        } else if (start->push == nullptr) {
          answer.Callback()(start->answer);
        } else {
          const Values gradient(shard.layout()->size(), value);
          EXPECT_THAT(start->push->Add(ChunkOf(0, gradient)), IsOk());
          if (whole) whole();
          shard.store().FinishPush(std::move(start->push), answer.Callback());
        }
      });
  return answer;
}

std::pair<uint64_t, float> ShardClient::Pull(uint64_t min_step) {
  PullRequest request;
  request.session = SessionId(session_);
  request.min_step = Step(min_step);
  return Pull(request);
}

std::pair<uint64_t, float> ShardClient::GoOn() {
  PullRequest request;
  request.session = SessionId(session_);
  request.after = Sequence(sequence_);
  return Pull(request);
}

std::pair<uint64_t, float> ShardClient::Pull(const PullRequest& request) {
  Answer<PullResult> answer;
  shard_.store().Pull(request, answer.Callback());
  const absl::StatusOr<PullResult>& result = answer.Wait();
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return {};
  }
  const absl::Span<const float> values = result->snapshot->values.span();
  EXPECT_GE(result->header.step, request.min_step);
  EXPECT_EQ(result->snapshot->step, result->header.step);
  EXPECT_THAT(values, ::testing::Each(values[0]));
  return {result->header.step.value(), values[0]};
}

void InParallel(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice
