// A worker's connections to the servers of its job.

#ifndef SLUICE_WORKER_CONNECTION_SERVER_GROUP_H_
#define SLUICE_WORKER_CONNECTION_SERVER_GROUP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/encoding/encoding.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Connects to another server of the job. UNAVAILABLE if it cannot be reached.
using DialServer =
    std::function<absl::StatusOr<std::unique_ptr<ServerConnection>>(const std::string& address)>;

// Externally synchronized. The first server is always connected.
class ServerGroup {
 public:
  ServerGroup(std::unique_ptr<ServerConnection> first, DialServer dial)
      : first_(std::move(first)), dial_(std::move(dial)) {}

  ServerConnection& first() const { return *first_; }
  uint32_t count() const { return servers_.empty() ? 1 : static_cast<uint32_t>(servers_.size()); }
  // Of all servers, for errors. Empty if there is one.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // The servers of a Welcome. Keeps the connections to those that are still there.
  void Take(const std::vector<std::string>& addresses);
  // Connects to those that are missing. The error names the first that cannot be reached.
  absl::Status DialMissing();
  // UNAVAILABLE names the first that is missing, as after a failed DialMissing().
  absl::Status CheckConnected() const;
  // Closes the connections to all but the first.
  void CloseOthers();

  // Also for connections that are made later.
  void UsePullEncoding(const Encoding& encoding);
  // Of those that are connected.
  bool stay_on_machine() const;

  // Calls act(connection, stripe) for each server, once all are connected.
  template <typename Act>
  void ForEach(const Act& act) const {
    act(*first_, 0);
    for (uint32_t i = 1; i < servers_.size(); ++i) act(*servers_[i], i);
  }

 private:
  const std::unique_ptr<ServerConnection> first_;
  const DialServer dial_;
  // Empty if there is one server. The first element is null in `servers_`, and another one while
  // that server cannot be reached: then there is no session.
  std::vector<std::unique_ptr<ServerConnection>> servers_;
  std::vector<std::string> addresses_;
  absl::optional<Encoding> pull_encoding_;  // unless it is as when the connection was made
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CONNECTION_SERVER_GROUP_H_
