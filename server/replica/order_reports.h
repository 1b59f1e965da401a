// The reports of all servers of a job on the order of a step that they carry out, for the leader.

#ifndef SLUICE_SERVER_REPLICA_ORDER_REPORTS_H_
#define SLUICE_SERVER_REPLICA_ORDER_REPORTS_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "server/aggregation/step_orders.h"
#include "server/state/shard_status.h"

namespace sluice {

// Externally synchronized. Here, as in GatheredReports, the leader's own server is replica 0.
class OrderReports {
 public:
  // An order is given to so many replicas, at the time `now`.
  void Begin(uint32_t replicas, absl::Time now);
  // A second report of a replica changes nothing, nor does one on no order.
  void Take(uint32_t replica, const StripeReport& report);
  // Whether all replicas have carried out the order.
  bool complete() const;
  // Their reports, in the order of their numbers, once it is complete.
  std::vector<StripeReport> TakeAll();

  // The replica with the lowest number that has not reported, and since when that is awaited.
  absl::optional<AwaitedHolder> awaited() const;

 private:
  std::vector<absl::optional<StripeReport>> reports_;  // by replica; empty while there is no order
  absl::Time given_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_REPLICA_ORDER_REPORTS_H_
