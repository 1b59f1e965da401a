// One side's reactor of a call of Follow: writes the messages that are queued, one after the other.

#ifndef SLUICE_SERVER_RPC_SERVERS_QUEUED_STREAM_H_
#define SLUICE_SERVER_RPC_SERVERS_QUEUED_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/servers/link_end.h"

namespace sluice {

// Base is gRPC's reactor for either side, Message what it writes, and Writer a MessageWriter of it.
// Any thread may call Write(), also when the call is done.
template <typename Base, typename Message, typename Writer = MessageWriter<Message>>
class QueuedStream : public Base, public Writer {
 public:
  void Write(std::shared_ptr<const Message> message) final ABSL_LOCKS_EXCLUDED(write_mu_) {
    absl::MutexLock lock(&write_mu_);
    if (stopped_) return;
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) this->StartWrite(queue_.front().get());
  }

  void OnWriteDone(bool ok) final ABSL_LOCKS_EXCLUDED(write_mu_) {
    absl::MutexLock lock(&write_mu_);
    queue_.pop_front();
    stopped_ = stopped_ || !ok;
    if (stopped_) queue_.clear();
    if (!queue_.empty()) this->StartWrite(queue_.front().get());
    if (last_) std::exchange(last_, nullptr)();
  }

 protected:
  // Writes nothing more, but for the message that is being written. Then calls `last`, perhaps
  // before it returns. Only the first call does anything.
  void StopWriting(std::function<void()> last) ABSL_LOCKS_EXCLUDED(write_mu_) {
    absl::MutexLock lock(&write_mu_);
    if (std::exchange(ending_, true)) return;
    stopped_ = true;
    if (queue_.empty()) return last();
    last_ = std::move(last);
  }

 private:
  absl::Mutex write_mu_;
  // The first one is being written.
  std::deque<std::shared_ptr<const Message>> queue_ ABSL_GUARDED_BY(write_mu_);
  bool stopped_ ABSL_GUARDED_BY(write_mu_) = false;
  bool ending_ ABSL_GUARDED_BY(write_mu_) = false;
  std::function<void()> last_ ABSL_GUARDED_BY(write_mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_QUEUED_STREAM_H_
