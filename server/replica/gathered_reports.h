// Gathers the reports of all servers of a job on pushes, for the leader: a push has arrived when
// every server has said so. It is refused when one has.
//
// Here, other than elsewhere, the leader's own server counts as a replica: it is number 0.

#ifndef SLUICE_SERVER_REPLICA_GATHERED_REPORTS_H_
#define SLUICE_SERVER_REPLICA_GATHERED_REPORTS_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/replica/replica_commands.h"

namespace sluice {

// Externally synchronized. A second report of a replica on the same push changes nothing.
class GatheredReports {
 public:
  // `replicas`: all servers of the job.
  explicit GatheredReports(uint32_t replicas) : replicas_(replicas) {}

  // The push is admitted. Reports on pushes that are not awaited are ignored.
  void Await(PushId push) { parts_.try_emplace(push); }
  // It is dropped, or its session has ended.
  void Forget(PushId push) { parts_.erase(push); }
  // Returns the report on the whole push, once. When the last replica has its part, the report has
  // the norm over all parts, if all measured it, and the sum of their bytes. When a replica refuses
  // its part, before that, the report has the error, no norm, and the bytes that were reported. The
  // others may still wait for their parts then, so drop the push there.
  absl::optional<HaveReport> Take(uint32_t replica, const HaveReport& report);

 private:
  using Parts = std::map<uint32_t, HaveReport>;  // by replica

  uint32_t replicas_;
  std::map<PushId, Parts> parts_;  // of pushes that are awaited
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_GATHERED_REPORTS_H_
