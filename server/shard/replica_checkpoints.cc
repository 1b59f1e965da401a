#include "server/shard/replica_checkpoints.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace sluice {

void ReplicaCheckpoints::Load(const LoadCheckpoint& checkpoint) {
  for (uint32_t replica = 1; replica < group_.replicas(); ++replica) loading_.insert(replica);
  least_journaled_.step = Step(std::numeric_limits<uint64_t>::max());
  group_.Send(checkpoint);
}

// ServerIncarnation ends the job if one has failed.
void ReplicaCheckpoints::OnReport(uint32_t replica, const LoadedReport& report) {
  if (!report.failed.ok()) return;
  loading_.erase(replica);
  if (report.journaled < least_journaled_.step) least_journaled_ = {report.journaled, replica};
}

absl::Status ReplicaCheckpoints::CheckLoaded() const {
  if (loading_.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("server ", *loading_.begin(), " of ",
                                             group_.replicas(),
                                             " has not loaded its part of the checkpoint yet"));
}

std::shared_ptr<SavedStripes> ReplicaCheckpoints::Take(const TakeCheckpoint& checkpoint) {
  if (group_.replicas() == 1) return nullptr;
  saving_.push_back(std::make_shared<SavedStripes>(group_.replicas() - 1));
  if (group_.stopped()) saving_.back()->Stop(group_.why_stopped());
  group_.Send(checkpoint);
  return saving_.back();
}

void ReplicaCheckpoints::OnReport(uint32_t replica, const SavedReport& report) {
  const absl::StatusOr<uint64_t> checksum =
      report.failed.ok() ? absl::StatusOr<uint64_t>(report.checksum) : report.failed;
  // Each replica reports in the order of the commands.
  for (const auto& checkpoint : saving_) {
    if (checkpoint->Set(replica, checksum)) break;
  }
  while (!saving_.empty() && saving_.front()->complete()) saving_.pop_front();
}

void ReplicaCheckpoints::Stop(const absl::Status& why) {
  for (const auto& checkpoint : saving_) checkpoint->Stop(why);
}

}  // namespace sluice
