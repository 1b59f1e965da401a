// The status of each server of a job: what ListServers, the metrics and the page show.

#ifndef SLUICE_SERVER_STATE_SERVER_STATUS_H_
#define SLUICE_SERVER_STATE_SERVER_STATUS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "server/state/table_status.h"

namespace sluice {

// What a server counts itself. A plain value.
struct StripeFigures {
  static constexpr size_t kMostPulling = 256;

  absl::optional<Step> step;  // of its latest snapshot
  // Of the messages with tensors that workers have sent to it, and it to workers.
  uint64_t wire_bytes_received = 0;
  uint64_t wire_bytes_sent = 0;
  std::vector<TableStatus> tables = {};  // in the order of the layout
  // Sessions to which it sends parameters, at most kMostPulling.
  std::vector<SessionId> pulling = {};

  bool operator==(const StripeFigures& other) const {
    return step == other.step && wire_bytes_received == other.wire_bytes_received &&
           wire_bytes_sent == other.wire_bytes_sent && tables == other.tables &&
           pulling == other.pulling;
  }
  bool operator!=(const StripeFigures& other) const { return !(*this == other); }
};

// One server, as the leader sees it. A plain value.
struct ServerStatus {
  // Where workers reach it. Empty: it has not come yet, or it is the only server.
  std::string address;
  uint64_t elements = 0;  // of its stripe; 0 before the first worker has joined
  StripeFigures figures;  // those of another server are up to a second old
  bool connected = false;
  // How long `connected` has had its value; absent if the server has not come yet. Of the leader:
  // the time since its incarnation began.
  absl::optional<absl::Duration> unchanged;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_STATE_SERVER_STATUS_H_
