#include "worker/connection/calls_at_once.h"

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/stop_flag.h"

namespace sluice {

// What has become of the calls of one Run(). Any thread may use it.
class CallsAtOnce::Round {
 public:
  Round(Others others, const std::vector<bool>& cancelled)
      : others_(others), returned_(cancelled), cancelled_(cancelled) {}

  void Note(uint32_t server, const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    returned_[server] = true;
    ++returns_;
    if (server == 0) leader_returned_.Raise();
    if (status.ok()) {
      answered_ = answered_ || (server == 0 && others_ == Others::kEnd);
    } else if (!cancelled_[server] && (server == 0 || error_.ok())) {
      error_ = status;
    }
  }

  // Waits until so many calls have returned, or one of them ends the others.
  void Await(uint32_t calls) {
    const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return returns_ == calls || answered_ || !error_.ok();
    };
    absl::MutexLock lock(&mu_, absl::Condition(&over));
  }

  void AwaitLeader(absl::Duration longest) { leader_returned_.WaitFor(longest); }

  // Whether the call goes on. Its error will not be looked at.
  bool GiveUp(uint32_t server) {
    absl::MutexLock lock(&mu_);
    if (returned_[server]) return false;
    return cancelled_[server] = true;
  }

  absl::Status AwaitAll(uint32_t calls) {
    const auto all = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return returns_ == calls; };
    absl::MutexLock lock(&mu_, absl::Condition(&all));
    return answered_ ? absl::OkStatus() : error_;
  }

 private:
  const Others others_;
  absl::Mutex mu_;
  std::vector<bool> returned_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> cancelled_ ABSL_GUARDED_BY(mu_);
  uint32_t returns_ ABSL_GUARDED_BY(mu_) = 0;
  bool answered_ ABSL_GUARDED_BY(mu_) = false;  // the leader's answer ends the others
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  StopFlag leader_returned_;
};

absl::Status CallsAtOnce::Run(Others others, absl::FunctionRef<absl::Status(uint32_t)> call) {
  const auto servers = static_cast<uint32_t>(cancelled_.size());
  Round round(others, cancelled_);
  uint32_t calls = 0;
  for (uint32_t i = 0; i < servers; ++i) {
    if (cancelled_[i]) continue;
    ++calls;
    threads_.Run([&round, call, i] { round.Note(i, call(i)); });
  }
  const auto give_up = [&](uint32_t server) {
    if (!round.GiveUp(server)) return;
    cancelled_[server] = true;
    cancel_(server);
  };
  round.Await(calls);
  // The others go on as long as the leader's: if they broke off, it might end for that.
  if (!cancelled_[0]) round.AwaitLeader(patience_);
  for (uint32_t i = 0; i < servers; ++i) give_up(i);
  return round.AwaitAll(calls);
}

}  // namespace sluice
