// A push, a pull and an offer of parameters that consist of one call to each of a job's servers,
// which carries the stripe of that server. striped_connection.h makes them.

#ifndef SLUICE_WORKER_CONNECTION_STRIPED_CALLS_H_
#define SLUICE_WORKER_CONNECTION_STRIPED_CALLS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/executor.h"
#include "common/tensor/stripes.h"
#include "worker/connection/server_connection.h"

namespace sluice {

struct StripedCallOptions {
  Stripes stripes;                    // of the vector
  std::vector<std::string> servers;   // their addresses, for errors
  std::shared_ptr<Executor> threads;  // one for each server
  absl::Duration patience;            // see CallsAtOnce
};

// The error of a server, with the server's index and address in its text.
absl::Status NamedError(uint32_t server, const std::vector<std::string>& servers,
                        const absl::Status& status);

// The vectors have an element for each server, the leader's first. An error that another server
// has found names that server.

// Finish() returns the leader's outcome, and ends the other calls then.
std::unique_ptr<OutgoingPush> JoinPushes(std::vector<std::unique_ptr<OutgoingPush>> pushes,
                                         const StripedCallOptions& options);

// Read() returns the leader's header. INTERNAL if the servers' steps differ; UNAVAILABLE if
// their incarnations do, so that the caller joins again. It also sets `overwritten`: whether the
// parameters were overwritten in a server's memory while they were read.
std::unique_ptr<PendingPull> JoinPulls(std::vector<std::unique_ptr<PendingPull>> pulls,
                                       std::shared_ptr<std::atomic<bool>> overwritten,
                                       const StripedCallOptions& options);

// Where the rows that servers send belong: for each server, in the order in which it sends them,
// the elements of one vector.
struct RowPlaces {
  // `split` is SplitRows(rows), and `tables` are those of the layout.
  RowPlaces(const std::vector<RowIds>& rows, const std::vector<RowsOfServer>& split,
            const std::vector<TableSpec>& tables);

  struct Run {
    uint64_t begin = 0;
    uint64_t size = 0;
  };
  std::vector<std::vector<Run>> of_server;
};

// The same for a pull of rows.
std::unique_ptr<PendingPull> JoinRowPulls(std::vector<std::unique_ptr<PendingPull>> pulls,
                                          RowPlaces places, const StripedCallOptions& options);

// The slots of the whole vector. Nothing if the servers' slots are not of one step; the leader's
// error, or another's; INTERNAL if their names differ.
absl::StatusOr<absl::optional<PulledSlots>> JoinSlots(
    const std::vector<absl::StatusOr<PulledSlots>>& parts, const StripedCallOptions& options);

// Send() returns the leader's outcome, and ends the other calls then.
std::unique_ptr<PendingOffer> JoinOffers(std::vector<std::unique_ptr<PendingOffer>> offers,
                                         const StripedCallOptions& options);

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_STRIPED_CALLS_H_
