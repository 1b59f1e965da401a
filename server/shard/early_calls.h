// The calls that wait at a holder for the sequencer's log: streams at their headers, and pulls. It
// bounds them, also those of sessions that the log has not opened (yet).

#ifndef SLUICE_SERVER_SHARD_EARLY_CALLS_H_
#define SLUICE_SERVER_SHARD_EARLY_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
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
  struct Call {
    Name name;
    std::function<void(const absl::Status& why)> end;  // the answer, if it does not begin
  };

  static constexpr size_t kMostOfSession = 64;
  // Of all sessions that are not open. They end at the second Tick().
  static constexpr size_t kMostUnknown = 4096;

  // The log's sessions have the kMostSessions numbers after `base`. Returns the calls of others,
  // which are of an earlier incarnation.
  std::vector<Id> Begin(SessionId base) {
    base_ = base;
    std::vector<Id> earlier;
    for (const auto& [id, waiting] : calls_) {
      if (IsOfEarlier(waiting.call.name.session)) earlier.push_back(id);
    }
    return earlier;
  }

  // Notes a call that is about to wait. BAD_ARGUMENT if one with this name waits already, or too
  // many of its session do; UNKNOWN_SESSION if too many of unknown sessions do, or the log never
  // opens its session.
  absl::StatusOr<Id> Add(Call call, bool session_is_open) {
    const Name& name = call.name;
    if (IsOfEarlier(name.session)) return Unknown(name.session);
    if (ids_.count(name) > 0) return Refused(name, "is used by a call that waits");
    const auto others = of_session_.find(name.session);
    if (others != of_session_.end() && others->second >= kMostOfSession) {
      return Refused(name, "is one too many");
    }
    if (!session_is_open && unknown_ >= kMostUnknown) return Unknown(name.session);
    last_ = Id(last_.value() + 1);
    ids_.emplace(name, last_);
    ++of_session_[name.session];
    unknown_ += session_is_open ? 0 : 1;
    calls_.emplace(last_, Waiting{std::move(call), !session_is_open, 0});
    return last_;
  }

  // The call waits no more. Returns it, unless it was removed before. Destroy it outside locks.
  absl::optional<Call> Remove(Id id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return absl::nullopt;
    Call call = std::move(found->second.call);
    unknown_ -= found->second.unknown ? 1 : 0;
    if (--of_session_[call.name.session] == 0) of_session_.erase(call.name.session);
    ids_.erase(call.name);
    calls_.erase(found);
    return call;
  }

  // The session is open from now on.
  void Open(SessionId session) {
    for (auto& [id, waiting] : calls_) {
      if (waiting.call.name.session != session || !waiting.unknown) continue;
      waiting.unknown = false;
      --unknown_;
    }
  }

  // Returns the calls of unknown sessions that an earlier Tick() has seen.
  std::vector<Id> Tick() {
    std::vector<Id> late;
    for (auto& [id, waiting] : calls_) {
      if (waiting.unknown && waiting.ticks++ > 0) late.push_back(id);
    }
    return late;
  }

  static absl::Status Unknown(SessionId session) {
    return MakeError(
        Reason::kUnknownSession,
        absl::StrCat("the first server has not told of session ", session.value(), "; join again"));
  }

 private:
  static constexpr uint64_t kMostSessions = uint64_t{1} << 32;

  struct Waiting {
    Call call;
    bool unknown = false;
    int ticks = 0;
  };

  bool IsOfEarlier(SessionId session) const {
    return base_.has_value() && session.value() - base_->value() - 1 >= kMostSessions;
  }

  static absl::Status Refused(const Name& name, absl::string_view why) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("this call of session ", name.session.value(), " ", why,
                                  "; fields attempt and number rise within a session"));
  }

  absl::optional<SessionId> base_;  // absent before Begin()
  Id last_;
  std::map<Id, Waiting> calls_;
  std::map<Name, Id> ids_;
  std::map<SessionId, size_t> of_session_;
  size_t unknown_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SHARD_EARLY_CALLS_H_
