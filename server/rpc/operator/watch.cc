#include "server/rpc/operator/watch.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "common/wire/messages.h"
#include "server/rpc/operator/inspector_messages.h"

namespace sluice {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(1);
constexpr absl::Duration kShortestInterval = absl::Milliseconds(100);

absl::Duration IntervalOf(const v1::WatchStateRequest& request) {
  if (!request.has_min_interval()) return kDefaultInterval;
  return std::max(FromProto(request.min_interval()), kShortestInterval);
}

// The part of the state whose change a watcher is told of; times are not part of it.
std::string AspectOf(const ShardStatus& state) {
  std::vector<std::string> names = state.current.contributed;
  for (const AwaitedWorker& worker : state.current.awaited) {
    names.push_back(absl::StrCat("-", worker.worker));
  }
  return absl::StrCat(state.step.value(), " ", static_cast<int>(state.phase), " ", state.workers,
                      " ", state.observers, " ", state.current.accumulated, " ",
                      state.current.skipped, " ", absl::StrJoin(names, "\n"));
}

// Alternates between an alarm and a write. The cancellation of the call ends the alarm early.
class WatchStream final : public grpc::ServerWriteReactor<v1::ServerState> {
 public:
  WatchStream(const v1::WatchStateRequest& request, const Shard& shard)
      : shard_(shard), interval_(IntervalOf(request)) {
    Look();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::CANCELLED);
    } else {
      Rest();
    }
  }

  void OnCancel() override {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
    if (alarm_ != nullptr) alarm_->Cancel();
  }

  void OnDone() override { delete this; }

 private:
  void Look() {
    const ShardStatus state = shard_.Describe();
    std::string aspect = AspectOf(state);
    if (last_ == aspect) {
      Rest();
      return;
    }
    last_ = std::move(aspect);
    message_ = ToProto(state);
    StartWrite(&message_);
  }

  void Rest() {
    bool cancelled = false;
    {
      absl::MutexLock lock(&mu_);
      cancelled = cancelled_;
      if (!cancelled) {
        alarm_ =
            std::make_unique<grpc::Alarm>();  // an alarm cannot be set again in its own callback
        alarm_->Set(absl::ToChronoTime(absl::Now() + interval_), [this](bool) { Wake(); });
      }
    }
    if (cancelled) Finish(grpc::Status::CANCELLED);
  }

  void Wake() {
    bool cancelled = false;
    {
      absl::MutexLock lock(&mu_);
      cancelled = cancelled_;
    }
    if (cancelled) {
      Finish(grpc::Status::CANCELLED);
    } else {
      Look();
    }
  }

  const Shard& shard_;
  const absl::Duration interval_;
  std::string last_;  // the aspect that was written last; never empty then
  v1::ServerState message_;

  absl::Mutex mu_;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::ServerState>* ServeWatch(const v1::WatchStateRequest& request,
                                                      const Shard& shard) {
  return new WatchStream(request, shard);
}

}  // namespace sluice
