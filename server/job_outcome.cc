#include "server/job_outcome.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

bool AnyLeftInGoodOrder(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(), [](const SessionRecord& record) {
    return record.role == SessionRole::kWorker && record.presence == Presence::kLeft;
  });
}

// Whether workers ended because their gradients were refused. Only if no worker left in good order.
bool AnyWasNotFinite(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(),
                     [](const SessionRecord& record) { return record.not_finite; });
}

// The first few, and how many there are besides.
std::string FirstOf(std::vector<std::string> texts) {
  constexpr size_t kMost = 4;
  const size_t more = texts.size() - std::min(texts.size(), kMost);
  texts.resize(texts.size() - more);
  return absl::StrCat(absl::StrJoin(texts, "; "),
                      more > 0 ? absl::StrCat("; and ", more, " more") : "");
}

}  // namespace

bool AnyHasJoined(const std::vector<SessionRecord>& sessions) {
  return std::any_of(sessions.begin(), sessions.end(),
                     [](const SessionRecord& record) { return record.joined; });
}

int OutcomeOf(const Shard& shard, bool finished) {
  const ShardStatus state = shard.Describe();
  if (state.diverged) return kDiverged;
  const std::vector<SessionRecord> sessions = shard.Sessions();
  if (!finished || state.ended_before || AnyLeftInGoodOrder(sessions)) return kEndedWell;
  return AnyWasNotFinite(sessions) ? kNotFinite : kEveryWorkerLost;
}

bool CountersBalance(const Shard& shard) {
  const PushCounters counters = shard.Describe().counters;
  return counters.Balanced() && counters.in_progress == 0;
}

std::string LostBefore(const std::vector<SessionRecord>& sessions) {
  std::vector<std::string> names;
  for (const SessionRecord& record : sessions) {
    const bool is_lost =
        record.presence == Presence::kLost || record.presence == Presence::kEvicted;
    if (record.role == SessionRole::kWorker && record.joined && is_lost) {
      names.push_back(record.Describe());
    }
  }
  if (names.empty()) return "";
  return absl::StrCat("; it had lost ", FirstOf(std::move(names)),
                      ", for which mpirun ends a job unless --max-restarts=N starts it again");
}

std::string WhyItEnds(int code, const std::vector<SessionRecord>& sessions) {
  if (code == kDiverged) return "training diverged";
  std::vector<std::string> failures;
  for (const SessionRecord& record : sessions) {
    if (record.role == SessionRole::kWorker) failures.push_back(record.DescribeFailure());
  }
  return absl::StrCat(
      code == kNotFinite
          ? "every worker has ended, and gradients that were not finite were refused before; lower "
            "the learning rate, give --clip-norm or --skip-not-finite, or look for the batch that "
            "caused it: "
          : "every worker was lost: ",
      FirstOf(std::move(failures)));
}

}  // namespace sluice
