#include "server/rpc/lane_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

absl::Status NoSessionOfLane(SessionId session) {
  return MakeError(
      Reason::kUnknownSession,
      absl::StrCat("session ", session.value(), " has ended, or has not begun at this server; ",
                   "join again, or pull before the first lane"));
}

absl::Status TooManyLanes(size_t waiting) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat(waiting,
                                " lanes of this session wait for their first calls "
                                "already; begin those calls"));
}

}  // namespace sluice
