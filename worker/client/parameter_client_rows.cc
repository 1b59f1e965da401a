// The part of ParameterClient that pulls rows.

#include <glog/logging.h>

#include <utility>

#include "common/base/error.h"
#include "worker/client/parameter_client.h"
#include "worker/connection/call_retry.h"

namespace sluice {

std::unique_ptr<PendingPull> ParameterClient::StartRows(const std::vector<RowIds>& rows) {
  PullRequest request;
  request.session = welcome_.session;
  request.min_step = incarnation_ == welcome_.incarnation ? step_ : Step();
  return connection_->StartRowPull(request, rows);
}

absl::Status ParameterClient::PullRows(const std::vector<RowIds>& rows, absl::Span<float> to) {
  return FinishRows(StartRows(rows), rows, to);
}

absl::Status ParameterClient::FinishRows(std::unique_ptr<PendingPull> pull,
                                         const std::vector<RowIds>& rows, absl::Span<float> to) {
  for (int failures = 0;;) {
    const absl::StatusOr<PullHeader> header = pull->Read(to);
    const absl::Status& read = header.status();
    const bool old = header.ok() && header->incarnation == incarnation_ && header->step < step_;
    if (old) {  // it was asked for before this worker took its latest step
      pull = StartRows(rows);
      continue;
    }
    if (read.ok()) return read;
    if (!absl::IsDeadlineExceeded(read) && failures++ == kMaxRejoins) return read;
    if (IsLost(read)) {
      LOG(WARNING) << Shown(request_.worker) << " joins again: " << read.message();
      const absl::Status rejoined = Rejoin();
      if (!rejoined.ok()) return rejoined;
    } else if (!IsCorrupt(read) && !absl::IsDeadlineExceeded(read)) {
      return read;
    }
    pull = StartRows(rows);
  }
}

}  // namespace sluice
