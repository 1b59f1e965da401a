// What the log has told of the names of pushes and pulls, so that a holder can answer at once what
// comes after its command. It keeps one entry for each open session, and the ids that have ended.

#ifndef SLUICE_SERVER_HOLDER_TOLD_NAMES_H_
#define SLUICE_SERVER_HOLDER_TOLD_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/holder/ended_sessions.h"
#include "server/holder/holder_commands.h"

namespace sluice {

// Externally synchronized.
class ToldNames {
 public:
  void Open(SessionId session);
  // A command was on this push. None with a lower name is admitted from now on.
  void GoOnTo(const PushName& push);
  // This pull and those with lower numbers are dropped.
  void Drop(const PullName& pull);
  void End(SessionId session);

  // Why a stream that was not admitted never is, or a pull that was not released; OK if it may be.
  // UNKNOWN_SESSION if the session has ended, else CANCELLED.
  absl::Status WhyNever(const PushName& push) const;
  absl::Status WhyNever(const PullName& pull) const;

  bool IsOpen(SessionId session) const { return open_.count(session) > 0; }
  // The open sessions of which it keeps something.
  size_t sessions() const { return open_.size(); }

 private:
  struct Told {
    PushName push;      // the latest of which the log has told
    uint64_t pull = 0;  // pulls up to this one are dropped
  };

  Told At(SessionId session) const;

  std::map<SessionId, Told> open_;
  EndedSessions ended_;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_TOLD_NAMES_H_
