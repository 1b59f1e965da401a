// Pulls rows of a job's tables for a worker, and uses them again if it may.

#ifndef SLUICE_WORKER_CLIENT_WORKER_ROWS_H_
#define SLUICE_WORKER_CLIENT_WORKER_ROWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/protocol/protocol_types.h"
#include "worker/client/row_cache.h"
#include "worker/client/row_pull.h"
#include "worker/client/worker_session.h"

namespace sluice {

// Externally synchronized. Rows are of a step that is not earlier than what the session holds; with
// a cache they may be older by its max_age.
class WorkerRows {
 public:
  // How many rows Finish() has given, and how many of them the server has sent.
  struct Counts {
    uint64_t given = 0;
    uint64_t sent = 0;
  };

  // `session` outlives this.
  explicit WorkerRows(WorkerSession& session) : session_(session) {}

  // After the worker has joined: makes the cache, if there is to be one.
  void Begin(const RowCacheOptions& options);
  // See ParameterClient::StartRows() and FinishRows().
  RowPull Start(const std::vector<RowIds>& rows);
  absl::Status Finish(RowPull pull, absl::Span<float> to);

  const Counts& counts() const { return counts_; }
  void LogReuse() const;

 private:
  const std::vector<TableSpec>& tables() const { return session_.request().layout.tables(); }
  absl::Status CheckTables(const std::vector<RowIds>& rows) const;
  absl::Status CheckFinish(const RowPull& pull, absl::Span<float> to) const;
  uint64_t SizeOf(const std::vector<RowPull::Part>& parts) const;
  PullRequest Request() const;
  bool IsDropped(const RowPull::Part& part) const;
  bool AreLateEnough(const PullHeader& rows) const;
  void StartPart(RowPull::Part& part);
  absl::Status ReadParts(std::vector<RowPull::Part>& parts, absl::Span<float> to);
  absl::Status ReadWhole(std::vector<RowPull::Part>& parts, std::vector<float>* to);
  absl::Status ReadPart(RowPull::Part& part, absl::Span<float> to);
  absl::Status ReadOnce(RowPull::Part& part, absl::Span<float> to);
  absl::Status ReadBesideCache(RowPull& pull, absl::Span<float> to);
  void Keep(const RowPull::Part& part, absl::Span<const float> rows);

  WorkerSession& session_;
  std::unique_ptr<RowCache> cache_;  // null if each row is pulled
  Counts counts_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_CLIENT_WORKER_ROWS_H_
