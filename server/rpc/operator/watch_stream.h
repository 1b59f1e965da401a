// A stream that sends its caller a message at once, and again whenever the message has changed.
// WatchState and Health's Watch are such streams.

#ifndef SLUICE_SERVER_RPC_OPERATOR_WATCH_STREAM_H_
#define SLUICE_SERVER_RPC_OPERATOR_WATCH_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/wire/deadline.h"
#include "server/rpc/operator/open_watches.h"

namespace sluice {

// The shortest time between two calls of Look by one stream, except at the server's end.
inline constexpr absl::Duration kShortestWatchInterval = absl::Milliseconds(100);

// Alternates between an alarm and a write. If the call or the server ends, the alarm ends early.
// Deletes itself when the call is done.
template <typename Message>
class WatchStream final : public grpc::ServerWriteReactor<Message>, public OpenWatch {
 public:
  // Fills in the message, and returns whether it differs from the one before; the first one does.
  // Called by one thread at a time.
  using Look = std::function<bool(Message*)>;

  // `watches` outlives it. `interval` is at least kShortestWatchInterval.
  WatchStream(OpenWatches& watches, absl::Duration interval, Look look)
      : watches_(watches), interval_(interval), look_(std::move(look)) {
    watches_.Add(this);
    Tell();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      Rest();
    } else {
      this->Finish(grpc::Status::CANCELLED);
    }
  }

  void OnCancel() override {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
  }

  void End() override {
    absl::MutexLock lock(&mu_);
    ending_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
  }

  void OnDone() override {
    watches_.Remove(this);
    delete this;
  }

 private:
  // The write's completion may run on another thread at once, so nothing may follow the write.
  void Tell() { look_(&message_) ? this->StartWrite(&message_) : Rest(); }

  void TellLast() {
    if (look_(&message_)) {
      this->StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      this->Finish(grpc::Status::OK);
    }
  }

  void Rest() {
    bool rests = false;
    {
      absl::MutexLock lock(&mu_);
      rests = !cancelled_ && !ending_;
      if (rests) {
        alarm_ = std::make_unique<grpc::Alarm>();  // one cannot be set again in its own callback
        alarm_->Set(DeadlineAfter(interval_), [this](bool) { GoOn(); });
      }
    }
    if (!rests) GoOn();
  }

  void GoOn() {
    bool cancelled = false;
    bool ending = false;
    {
      absl::MutexLock lock(&mu_);
      cancelled = cancelled_;
      ending = ending_;
    }
    if (cancelled) {
      this->Finish(grpc::Status::CANCELLED);
    } else if (ending) {
      TellLast();
    } else {
      Tell();
    }
  }

  OpenWatches& watches_;
  const absl::Duration interval_;
  const Look look_;
  Message message_;

  absl::Mutex mu_;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_OPERATOR_WATCH_STREAM_H_
