#include "server/rpc/listening/call_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace sluice {

std::string CallJudge::Judge(const CallCounts& counts, absl::Duration now) {
  has_called_ = has_called_ || counts.begun > 0;
  if (!has_called_ && now >= first_call_due()) {
    return absl::StrCat("it began no call within ", absl::FormatDuration(rules_.first_call));
  }
  const int64_t open = counts.begun - counts.ended - counts.broken;
  if (open > rules_.open) {
    return absl::StrCat("it has ", open, " unfinished calls, expected at most ", rules_.open);
  }
  if (BrokeTooMany(counts.broken, now)) {
    return absl::StrCat("it broke calls off faster than ", rules_.broken, " in a second");
  }
  const int64_t unfinished = UnfinishedBytes(counts);
  if (unfinished > rules_.unfinished) {
    return absl::StrCat("it sent ", unfinished,
                        " bytes without the end of a message or of metadata, ", "expected at most ",
                        rules_.unfinished);
  }
  return "";
}

int64_t CallJudge::UnfinishedBytes(const CallCounts& counts) {
  if (counts.begun != finished_.begun || counts.messages != finished_.messages) finished_ = counts;
  return counts.bytes - finished_.bytes;
}

bool CallJudge::BrokeTooMany(int64_t broken, absl::Duration now) {
  const double most = static_cast<double>(rules_.broken);
  const double earned = absl::ToDoubleSeconds(now - judged_) * most;
  allowance_ = std::min(most, allowance_ + earned - static_cast<double>(broken - broken_));
  judged_ = now;
  broken_ = broken;
  return allowance_ < 0;
}

}  // namespace sluice
