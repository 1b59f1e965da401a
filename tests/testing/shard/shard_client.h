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

// Waits for the answer to a call, and counts the answers. Copies share their state. Any thread may
// use it.
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

// Used by one thread, except set_session().
class ShardClient {
 public:
  ShardClient(Shard& shard, SessionId session) : shard_(shard), session_(session.value()) {}

  // Sets the session of all later calls. Any thread may call it.
  void set_session(SessionId session) { session_ = session.value(); }

  // Pushes a gradient whose elements are all `value`. Calls `whole` once all of it has arrived, and
  // before the push is finished.
  Answer<PushOutcome> Push(uint64_t step, float value,
                           const std::function<void()>& whole = nullptr);

  // Repeats the latest push (the same sequence), in the current session.
  Answer<PushOutcome> Repeat(uint64_t step, float value,
                             const std::function<void()>& whole = nullptr);

  // Waits for `min_step`. Expects that all elements of the parameters are equal. Returns the step
  // and the value of the elements.
  std::pair<uint64_t, float> Pull(uint64_t min_step);

  // The same, but waits until the worker may continue after its latest push.
  std::pair<uint64_t, float> GoOn();

 private:
  std::pair<uint64_t, float> Pull(const PullRequest& request);

  Shard& shard_;
  std::atomic<uint64_t> session_;
  uint64_t sequence_ = 0;
};

// Calls body(0) … body(count − 1), each on its own thread, and waits until all have returned.
void InParallel(int count, const std::function<void(int)>& body);

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_SHARD_SHARD_CLIENT_H_
