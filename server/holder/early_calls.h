// Keeps workers' calls at a holder until the sequencer's log reaches them. Such calls are pulls,
// and streams that have brought only their header. This class limits how many calls wait, also
// those of sessions that the log has not opened.

#ifndef SLUICE_SERVER_HOLDER_EARLY_CALLS_H_
#define SLUICE_SERVER_HOLDER_EARLY_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace sluice {

// Id is PushId or PullId. Name is PushName or PullName. Call holds the callback that answers the
// call. A call waits as long as this object keeps it. Whoever takes it out answers it or drops it.
// Externally synchronized.
template <typename Id, typename Name, typename Call>
class EarlyCalls {
 public:
  // The most calls of one session.
  static constexpr size_t kMostOfSession = 64;
  // The most calls of all sessions that are not open. A call that is here at two TakeUnknown() ends
  // at the second one.
  static constexpr size_t kMostUnknown = 4096;

  struct Ended {
    Call call;
    absl::Status why;  // UNKNOWN_SESSION
  };

  // Sessions of the sequencer's incarnation have the kMostSessions numbers after `base`. Takes out
  // the calls of all other sessions, because they belong to an earlier incarnation. From now on,
  // Add() refuses such calls.
  std::vector<Ended> TakeEarlier(SessionId base) {
    base_ = base;
    return TakeIf([this](SessionId session, Waiting&) { return IsOfEarlier(session); });
  }

  // Takes out the calls whose sessions are not open, if they were already here at an earlier
  // TakeUnknown().
  std::vector<Ended> TakeUnknown() {
    return TakeIf([](SessionId /*session*/, Waiting& call) {
      return call.unknown && std::exchange(call.old, true);
    });
  }

  // Keeps the call. After an error the caller still has `call`:
  // - BAD_ARGUMENT if a call with this name waits already, or kMostOfSession calls of its session.
  // - UNKNOWN_SESSION if its session belongs to an earlier incarnation, or if the session is not
  //   open and kMostUnknown calls of such sessions wait.
  absl::StatusOr<Id> Add(const Name& name, Call& call, bool session_is_open) {
    if (IsOfEarlier(name.session)) return Unknown(name.session);
    if (calls_.count(name) > 0) return Refused(name, "is used by a call that waits");
    if (CountOf(name.session) >= kMostOfSession) return Refused(name, "is one too many");
    if (!session_is_open && unknown_ >= kMostUnknown) return Unknown(name.session);
    last_ = Id(last_.value() + 1);
    names_.emplace(last_, name);
    unknown_ += session_is_open ? 0 : 1;
    calls_.emplace(name, Waiting{last_, std::move(call), !session_is_open});
    return last_;
  }

  // Take out one call. Absent if no such call waits, for example because it was taken out before.
  absl::optional<Call> Take(Id id) {
    const auto name = names_.find(id);
    return name == names_.end() ? absl::nullopt : Take(Name(name->second));
  }
  absl::optional<Call> Take(const Name& name) {
    const auto found = calls_.find(name);
    return found == calls_.end() ? absl::nullopt : absl::make_optional(Remove(found));
  }

  // Takes out the calls of last.session whose names are not higher than `last`.
  std::vector<Call> TakeUpTo(const Name& last) {
    std::vector<Call> taken;
    const auto end = calls_.upper_bound(last);
    for (auto it = BeginOf(last.session); it != end;) taken.push_back(Remove(it++));
    return taken;
  }

  // The log has opened the session. TakeUnknown() leaves its calls here from now on.
  void Open(SessionId session) {
    for (auto it = BeginOf(session); IsOf(session, it); ++it) {
      unknown_ -= it->second.unknown ? 1 : 0;
      it->second.unknown = false;
    }
  }

 private:
  static constexpr uint64_t kMostSessions = uint64_t{1} << 32;

  struct Waiting {
    Id id;
    Call call;
    bool unknown = false;  // the session is not open
    bool old = false;      // TakeUnknown() has seen this call
  };
  using Calls = std::map<Name, Waiting>;

  typename Calls::iterator BeginOf(SessionId session) {
    Name first;
    first.session = session;
    return calls_.lower_bound(first);
  }
  bool IsOf(SessionId session, typename Calls::iterator it) const {
    return it != calls_.end() && it->first.session == session;
  }
  size_t CountOf(SessionId session) {
    size_t count = 0;
    for (auto it = BeginOf(session); IsOf(session, it); ++it) ++count;
    return count;
  }

  Call Remove(typename Calls::iterator it) {
    Call call = std::move(it->second.call);
    unknown_ -= it->second.unknown ? 1 : 0;
    names_.erase(it->second.id);
    calls_.erase(it);
    return call;
  }

  std::vector<Ended> TakeIf(absl::FunctionRef<bool(SessionId, Waiting&)> ends) {
    std::vector<Ended> taken;
    for (auto it = calls_.begin(); it != calls_.end();) {
      const auto call = it++;
      const SessionId session = call->first.session;
      if (ends(session, call->second)) taken.push_back({Remove(call), Unknown(session)});
    }
    return taken;
  }

  bool IsOfEarlier(SessionId session) const {
    return base_.has_value() && session.value() - base_->value() - 1 >= kMostSessions;
  }

  static absl::Status Unknown(SessionId session) {
    return MakeError(
        Reason::kUnknownSession,
        absl::StrCat("the first server has not told of session ", session.value(), "; join again"));
  }

  static absl::Status Refused(const Name& name, absl::string_view why) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("this call of session ", name.session.value(), " ", why,
                                  "; fields attempt and number rise within a session"));
  }

  absl::optional<SessionId> base_;  // absent before TakeEarlier()
  Id last_;
  Calls calls_;
  std::map<Id, Name> names_;  // of the same calls
  size_t unknown_ = 0;        // calls whose session is not open
};

}  // namespace sluice

#endif  // SLUICE_SERVER_HOLDER_EARLY_CALLS_H_
