#include "worker/connection/exit_notice.h"

#include <stdlib.h>
#include <unistd.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {
namespace {

struct Notice {
  pid_t process;  // that made it
  std::function<void(int code)> tell;
};

// Only glibc's on_exit() tells the exit code. It takes no handler back, so all notices share one.
class Notices {
 public:
  static Notices& OfThisProcess() {
    static auto* const notices = new Notices;  // outlives every handler of exit()
    return *notices;
  }

  void Add(const ExitNotice* of, Notice notice) {
    absl::MutexLock lock(&mu_);
    notices_[of] = std::move(notice);
  }

  void Remove(const ExitNotice* of) {
    absl::MutexLock lock(&mu_);
    notices_.erase(of);
  }

 private:
  Notices() {
    on_exit([](int code, void* notices) { static_cast<Notices*>(notices)->TellAll(code); }, this);
  }

  void TellAll(int code) {
    std::vector<Notice> notices;
    {
      absl::MutexLock lock(&mu_);
      for (const auto& entry : notices_) notices.push_back(entry.second);
    }
    for (const Notice& notice : notices) {
      // A fork has none of the threads that a call needs.
      if (notice.process == getpid()) notice.tell(code);
    }
  }

  absl::Mutex mu_;
  std::map<const ExitNotice*, Notice> notices_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

ExitNotice::ExitNotice(std::function<void(int code)> tell) {
  Notices::OfThisProcess().Add(this, {getpid(), std::move(tell)});
}

ExitNotice::~ExitNotice() { Notices::OfThisProcess().Remove(this); }

}  // namespace sluice
