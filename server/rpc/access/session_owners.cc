#include "server/rpc/access/session_owners.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

void SessionOwners::Open(SessionId session, Owner owner) {
  const absl::MutexLock lock(&mu_);
  owners_[session] = std::move(owner);
}

void SessionOwners::Close(SessionId session) {
  const absl::MutexLock lock(&mu_);
  owners_.erase(session);
}

absl::Status SessionOwners::CheckObserves(SessionId session, absl::string_view connection) const {
  const absl::MutexLock lock(&mu_);
  const auto owner = owners_.find(session);
  if (owner != owners_.end() && owner->second.works) {
    return MakeError(
        Reason::kWrongRole,
        absl::StrCat("the caller's certificate does not have the role worker; session ",
                     session.value(), " is a worker's"));
  }
  const bool uses = owner != owners_.end() && (owner->second.connection == connection ||
                                               owner->second.connection == kAnyConnection);
  if (uses) return absl::OkStatus();
  return MakeError(Reason::kUnknownSession,
                   absl::StrCat("session ", session.value(),
                                " is not one that was joined on this connection; an observer uses "
                                "the connection of its Join; join anew"));
}

}  // namespace sluice
