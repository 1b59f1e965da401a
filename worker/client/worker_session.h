// A worker's sessions with a server, one after the other: how they begin, break and end.

#ifndef SLUICE_WORKER_CLIENT_WORKER_SESSION_H_
#define SLUICE_WORKER_CLIENT_WORKER_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/protocol/protocol_types.h"
#include "worker/client/constant_memory.h"
#include "worker/client/round_encodings.h"
#include "worker/client/row_cache_options.h"
#include "worker/connection/server_connection.h"

namespace sluice {

// Owns the connection. Externally synchronized. It also knows which parameters this worker holds,
// because a server that comes back may not have got so far.
class WorkerSession {
 public:
  WorkerSession(std::unique_ptr<ServerConnection> connection, RoundEncodings encodings)
      : connection_(std::move(connection)), encodings_(std::move(encodings)) {}

  // See ParameterClient. An observer's session has no constants and no encodings. `row_cache` is
  // checked against each welcome.
  void KeepConstants(ConstantMemory memory) { constants_ = std::move(memory); }
  absl::Status Join(const JoinRequest& request, const RowCacheOptions& row_cache);
  // After a call that IsLost(), or after Leave(), opens another session. DATA_LOSS if that server
  // has no parameters any more, and the model has tables.
  enum class After { kLoss, kLeave };
  absl::Status Rejoin(After after = After::kLoss);
  // For an observer: waits until every worker has left, and returns the final step.
  absl::StatusOr<Step> AwaitEnd();
  absl::Status Leave(const Farewell& farewell);
  absl::Status LeaveAtOnce(const Farewell& farewell);

  // Parameters that came with that header were pulled in this session.
  void Hold(const PullHeader& header);
  // Start a pull, whose number is then pulls().
  std::unique_ptr<PendingPull> StartPull(const PullRequest& request);
  std::unique_ptr<PendingPull> StartRowPull(const PullRequest& request,
                                            const std::vector<RowIds>& rows);

  ServerConnection& connection() const { return *connection_; }
  RoundEncodings& encodings() { return encodings_; }
  const JoinRequest& request() const { return request_; }
  std::string worker() const { return Shown(request_.worker); }  // for the log
  const Welcome& welcome() const { return welcome_; }            // of the latest session
  bool has_parameters() const { return has_parameters_; }        // the server, as far as is known
  const PullHeader& held() const { return held_; }               // step 0 before the first pull
  uint64_t pulls() const { return pulls_; }                      // that were begun
  bool left() const { return left_; }
  bool has_others_constants() const { return has_others_constants_; }
  uint64_t constants_pulled() const { return constants_pulled_; }

 private:
  absl::Status Open();
  absl::Status TakeConstants();
  absl::Status CheckHasRows() const;
  void LogReturn() const;

  const std::unique_ptr<ServerConnection> connection_;
  RoundEncodings encodings_;
  RowCacheOptions row_cache_;
  JoinRequest request_;
  Welcome welcome_;
  ConstantMemory constants_;
  absl::optional<uint64_t> constants_taken_;  // the checksum of the job's, once they were equal
  bool has_others_constants_ = false;         // the job's are another worker's
  uint64_t constants_pulled_ = 0;
  bool has_parameters_ = false;
  PullHeader held_;
  uint64_t pulls_ = 0;
  bool left_ = false;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_WORKER_SESSION_H_
