#include "server/rpc/access/observer_pulls.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

absl::StatusOr<PullPermit> ObserverPulls::Begin(SessionId session) {
  absl::MutexLock lock(&mu_);
  int& under_way = under_way_[session];
  if (under_way == kMost) {
    return MakeError(Reason::kTooManyPulls,
                     absl::StrCat("session ", session.value(), ", an observer's, has ", kMost,
                                  " pulls under way, the most there may be; read those first"));
  }
  ++under_way;
  return PullPermit(this, [this, session](const void*) { End(session); });
}

void ObserverPulls::End(SessionId session) {
  absl::MutexLock lock(&mu_);
  const auto found = under_way_.find(session);
  if (--found->second == 0) under_way_.erase(found);
}

}  // namespace sluice
