// The pushes, and offers of parameters, that have arrived on this server without an error, and are
// not yet part of a sum.

#ifndef SLUICE_SERVER_REPLICA_ARRIVED_PUSHES_H_
#define SLUICE_SERVER_REPLICA_ARRIVED_PUSHES_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "server/aggregation/pending_push.h"

namespace sluice {

// Any thread may call it. The caller frees what it gets with no lock held, because that takes a
// time that grows with the model.
class ArrivedPushes {
 public:
  // Keeps a push until it is taken or dropped.
  void Keep(std::unique_ptr<PendingPush> push) ABSL_LOCKS_EXCLUDED(mu_);
  std::unique_ptr<PendingPush> Take(PushId push) ABSL_LOCKS_EXCLUDED(mu_);  // one that is kept
  // Null if it is not kept.
  [[nodiscard]] std::unique_ptr<PendingPush> Drop(PushId push) ABSL_LOCKS_EXCLUDED(mu_);
  // All pushes of the session but those of `except`.
  [[nodiscard]] std::vector<std::unique_ptr<PendingPush>> DropSession(
      SessionId session, absl::Span<const PushId> except) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::map<PushId, std::unique_ptr<PendingPush>> pushes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_ARRIVED_PUSHES_H_
