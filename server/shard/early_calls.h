// The calls that wait at a holder for the sequencer's log: streams at their headers, and pulls. It
// bounds them, also those of sessions that the log has not opened (yet).

#ifndef SLUICE_SERVER_SHARD_EARLY_CALLS_H_
#define SLUICE_SERVER_SHARD_EARLY_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace sluice {

// Id is PushId or PullId, and Name the name that goes with it. Externally synchronized.
template <typename Id, typename Name>
class EarlyCalls {
 public:
  static constexpr size_t kMostOfSession = 64;
  // Of all sessions that are not open. They end at the second Tick().
  static constexpr size_t kMostUnknown = 4096;

  // Notes a call that is about to wait. BAD_ARGUMENT if one with this name waits already, or too
  // many of its session do; UNKNOWN_SESSION if too many of unknown sessions do.
  absl::StatusOr<Id> Add(const Name& name, bool session_is_open) {
    if (ids_.count(name) > 0) return Refused(name, "is used by a call that waits");
    const auto others = of_session_.find(name.session);
    if (others != of_session_.end() && others->second >= kMostOfSession) {
      return Refused(name, "is one too many");
    }
    if (!session_is_open && unknown_ >= kMostUnknown) return Unknown(name);
    last_ = Id(last_.value() + 1);
    calls_.emplace(last_, Call{name, !session_is_open, 0});
    ids_.emplace(name, last_);
    ++of_session_[name.session];
    unknown_ += session_is_open ? 0 : 1;
    return last_;
  }

  // The call waits no more. Returns its name, unless it was removed before.
  absl::optional<Name> Remove(Id id) {
    const auto call = calls_.find(id);
    if (call == calls_.end()) return absl::nullopt;
    const Name name = call->second.name;
    unknown_ -= call->second.unknown ? 1 : 0;
    if (--of_session_[name.session] == 0) of_session_.erase(name.session);
    ids_.erase(name);
    calls_.erase(call);
    return name;
  }

  // The session is open from now on.
  void Open(SessionId session) {
    for (auto& [id, call] : calls_) {
      if (call.name.session != session || !call.unknown) continue;
      call.unknown = false;
      --unknown_;
    }
  }

  // Returns the calls of unknown sessions that an earlier Tick() has seen.
  std::vector<Id> Tick() {
    std::vector<Id> late;
    for (auto& [id, call] : calls_) {
      if (call.unknown && call.ticks++ > 0) late.push_back(id);
    }
    return late;
  }

  static absl::Status Unknown(const Name& name) {
    return MakeError(Reason::kUnknownSession,
                     absl::StrCat("the first server has not told of session ", name.session.value(),
                                  "; join again"));
  }

 private:
  struct Call {
    Name name;
    bool unknown = false;
    int ticks = 0;
  };

  static absl::Status Refused(const Name& name, absl::string_view why) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("this call of session ", name.session.value(), " ", why,
                                  "; fields attempt and number rise within a session"));
  }

  Id last_;
  std::map<Id, Call> calls_;
  std::map<Name, Id> ids_;
  std::map<SessionId, size_t> of_session_;
  size_t unknown_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_EARLY_CALLS_H_
