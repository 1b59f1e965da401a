// Rows that a ParameterClient has begun to pull.

#ifndef SLUICE_WORKER_CLIENT_ROW_PULL_H_
#define SLUICE_WORKER_CLIENT_ROW_PULL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/protocol_types.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// A server takes a limited number of ids in one call, so many rows are pulled in parts, one after
// the other. Destroying it gives the rows up, also when the client is gone.
struct RowPull {
  struct Part {
    std::vector<RowIds> rows;
    PullRequest request;                // with which `pull` was started
    std::unique_ptr<PendingPull> pull;  // null before it is started, and once it was read
    Step step;                          // of the rows, once they were read
    uint64_t number = 0;                // of `pull` among all pulls that the client has begun
  };
  std::vector<RowIds> rows;  // that were asked for
  std::vector<Part> parts;   // of them, or with a cache of those that are not in it
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_ROW_PULL_H_
