// A worker of a shard, for tests that call the shard from many threads.

#ifndef SLUICE_TESTS_TESTING_SHARD_SHARD_CLIENT_H_
#define SLUICE_TESTS_TESTING_SHARD_SHARD_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "common/protocol/protocol_types.h"
#include "server/shard/shard.h"

namespace sluice {

// What a call will be answered, and how often it was. Copies share it; safe to use from any thread.
template <typename T>
class Answer {
 public:
  std::function<void(absl::StatusOr<T>)> Callback() {
    return [state = state_](absl::StatusOr<T> value) {
      if (state->calls.fetch_add(1) > 0) return;
      state->value = std::move(value);
      state->done.Notify();
    };
  }

  const absl::StatusOr<T>& Wait() const {
    state_->done.WaitForNotification();
    return state_->value;
  }

  int calls() const { return state_->calls.load(); }

 private:
  struct State {
    absl::StatusOr<T> value = absl::UnknownError("not answered");
    absl::Notification done;
    std::atomic<int> calls{0};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// For one thread, but for its session.
class ShardClient {
 public:
  ShardClient(Shard& shard, SessionId session) : shard_(shard), session_(session.value()) {}

  // The session of what follows. From any thread.
  void set_session(SessionId session) { session_ = session.value(); }

  // Pushes `value` in every element. `whole` is called when all of it has arrived.
  Answer<PushOutcome> Push(uint64_t step, float value,
                           const std::function<void()>& whole = nullptr);

  // The same push once more, in the session of now.
  Answer<PushOutcome> Repeat(uint64_t step, float value,
                             const std::function<void()>& whole = nullptr);

  // Waits for `min_step`. Expects of what it gets that all elements are equal; returns its step and
  // them.
  std::pair<uint64_t, float> Pull(uint64_t min_step);

  // As above, but waits until the worker may go on after its latest push.
  std::pair<uint64_t, float> GoOn();

 private:
  std::pair<uint64_t, float> Pull(const PullRequest& request);

  Shard& shard_;
  std::atomic<uint64_t> session_;
  uint64_t sequence_ = 0;
};

// Calls `body` with 0 to `count` − 1, on a thread each, and waits for their end.
void InParallel(int count, const std::function<void(int)>& body);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_SHARD_CLIENT_H_
