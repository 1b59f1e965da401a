#include "worker/client/parameter_follower.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "worker/connection/call_retry.h"

namespace sluice {
namespace {

// The pause between two attempts to observe a job that has no worker yet.
constexpr absl::Duration kPause = absl::Milliseconds(200);

// Steps that pulls are asked ahead of the newest, at most, so that they get one step together.
constexpr uint64_t kMostAhead = 1024;

// A code that no answer of a server has.
absl::Status GoneError(absl::string_view why) { return absl::DeadlineExceededError(why); }

}  // namespace

ParameterFollower::ParameterFollower(std::unique_ptr<ServerConnection> connection,
                                     JoinRequest request, absl::Duration patience,
                                     const Clock& clock)
    : connection_(std::move(connection)),
      request_(std::move(request)),
      patience_(patience),
      clock_(clock) {}

ParameterFollower::~ParameterFollower() {
  // An error does not matter: the server notices that the connection ends.
  if (welcome_.has_value()) connection_->Leave(welcome_->session, {}).IgnoreError();
}

absl::StatusOr<absl::optional<FollowedStep>> ParameterFollower::Next(uint64_t every,
                                                                     absl::Span<float> parameters) {
  return Next(every, Target{parameters, {}, {}});
}

absl::StatusOr<absl::optional<FollowedStep>> ParameterFollower::Next(
    uint64_t every, absl::Span<float> parameters, const std::vector<RowIds>& rows,
    absl::Span<float> to) {
  const absl::Status sound = CheckRows(rows, to);
  if (!sound.ok()) return sound;
  return Next(every, Target{parameters, PartsOf(rows, kMaxPulledIds), to});
}

absl::Status ParameterFollower::CheckRows(const std::vector<RowIds>& rows,
                                          absl::Span<const float> to) const {
  size_t ids = 0;
  for (const RowIds& of_table : rows) {
    ids += of_table.ids.size();
    if (of_table.table < request_.layout.tables().size()) continue;
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("rows of table ", of_table.table,
                                  " are followed, and the model "
                                  "has ",
                                  request_.layout.tables().size(), " tables"));
  }
  if (ids > kMostFollowedIds) {
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat(ids, " rows are followed, and a server gives an observer at most ",
                     kMostFollowedIds, " of one step; test with fewer"));
  }
  const uint64_t elements = ElementsOf(rows, request_.layout.tables());
  if (to.size() == elements) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the rows to follow have ", elements,
                                " elements, and there is memory for ", to.size()));
}

absl::StatusOr<absl::optional<FollowedStep>> ParameterFollower::Next(uint64_t every,
                                                                     const Target& to) {
  int rejoins = 0;
  while (!ended_) {
    if (!welcome_.has_value()) {
      const absl::Status joined = Join();
      if (!joined.ok()) return joined;
    }
    const Step min_step = given_.has_value() ? Step(given_->step.value() + every) : Step();
    auto header = Pull(min_step, to);
    if (header.ok()) {
      const absl::Status taken = TakeConstants();
      if (!taken.ok()) header = taken;
    }
    if (header.ok()) {
      ended_ = header->last;
      const FollowedStep found = {header->step, header->incarnation};
      const bool known = given_.has_value() && given_->step == found.step &&
                         given_->incarnation == found.incarnation;
      given_ = found;
      if (known) continue;
      return given_;
    }
    const Reason why = ReasonOf(header.status());
    if (why == Reason::kDraining || why == Reason::kDiverged) break;
    if (absl::IsCancelled(header.status())) {  // the next pull says whether the session goes on
      connection_->AwaitRetry(kPause);
      continue;
    }
    if (!IsLost(header.status()) || ++rejoins > kMaxRejoins) return header.status();
    if (EndToldBy(*connection_).has_value()) break;
    LOG(WARNING) << Shown(request_.worker) << " joins again: " << header.status().message();
    welcome_.reset();
    const absl::Status back = AwaitServer();
    if (!back.ok()) return back;
  }
  ended_ = true;
  return absl::optional<FollowedStep>();
}

absl::Status ParameterFollower::KeepConstants(ConstantMemory memory) {
  const absl::Status fits = CheckFits(memory, request_.layout.constants());
  if (fits.ok()) constants_ = std::move(memory);
  return fits;
}

// There are parameters, so the job has its constants. Those of a session never change.
absl::Status ParameterFollower::TakeConstants() {
  const bool known = constants_taken_.has_value() && (constants_session_ == welcome_->session ||
                                                      welcome_->constants == constants_taken_);
  if (constants_.empty() || known) return absl::OkStatus();
  const auto pulled = PullConstants(*connection_, welcome_->session, constants_);
  if (!pulled.ok()) return pulled.status();
  constants_taken_ = *pulled;
  constants_session_ = welcome_->session;
  ++constants_pulled_;
  return absl::OkStatus();
}

absl::Status ParameterFollower::Report(const Results& results) {
  if (!welcome_.has_value() || !given_.has_value()) return absl::OkStatus();
  return connection_->Report(welcome_->session, {given_->step, results});
}

absl::Status ParameterFollower::AwaitServer() {
  const absl::Status back = connection_->Reconnect();
  return absl::IsUnavailable(back) ? GoneError(back.message()) : back;
}

// Waits until there is a job to observe.
absl::Status ParameterFollower::Join() {
  const absl::Time end = clock_.Now() + patience_;
  for (int lost = 0;;) {
    const absl::Status joined = TryJoin();
    if (joined.ok()) return joined;
    if (ReasonOf(joined) == Reason::kNotInitialized) {
      if (clock_.Now() >= end) {
        return GoneError(absl::StrCat("no worker joined the server within ",
                                      absl::FormatDuration(patience_),
                                      "; there is nothing to follow"));
      }
      connection_->AwaitRetry(kPause);
    } else if (IsLost(joined) && ++lost <= kMaxRejoins) {
      if (lost > 1) connection_->AwaitRetry(PauseBeforeRejoin(lost - 1));
      const absl::Status back = AwaitServer();
      if (!back.ok()) return back;
    } else {
      return joined;
    }
  }
}

absl::Status ParameterFollower::TryJoin() {
  const auto welcome = connection_->Join(request_);
  if (!welcome.ok()) return welcome.status();
  request_.job_id = welcome->job_id;  // another job at this address is refused later
  welcome_ = *welcome;
  const bool came_back = given_.has_value() && given_->incarnation != welcome->incarnation;
  if (came_back && welcome->step < given_->step) {
    LOG(WARNING) << "the server came back at step " << welcome->step << ": step " << given_->step
                 << " of incarnation " << given_->incarnation << " is lost";
    given_->step = welcome->step;
  }
  return absl::OkStatus();
}

// Repeats the pull while its step is not made, and if it was damaged on its way.
absl::StatusOr<PullHeader> ParameterFollower::Pull(Step min_step, const Target& to) {
  for (int corrupt = 0;;) {
    auto header = PullTogether(min_step, to);
    if (absl::IsDeadlineExceeded(header.status())) continue;
    if (IsCorrupt(header.status()) && ++corrupt <= kMaxRepeats) continue;
    return header;
  }
}

// With one server all pulls wait for the same step, so they are answered with it, unless it is made
// before the last of them arrives. Then they are repeated for a step that is further ahead. After
// the last step no other is made, so the repetition ends there at the latest.
absl::StatusOr<PullHeader> ParameterFollower::PullTogether(Step min_step, const Target& to) {
  for (uint64_t ahead = 1;; ahead = std::min(2 * ahead, kMostAhead)) {
    Step newest;
    auto header = PullOnce(min_step, to, &newest);
    if (!header.ok() || header->step == newest) return header;
    min_step = Step(newest.value() + ahead);
  }
}

// `newest` is a later step than the answer's if the rows are not of the answer's.
absl::StatusOr<PullHeader> ParameterFollower::PullOnce(Step min_step, const Target& to,
                                                       Step* newest) {
  PullRequest request;
  request.session = welcome_->session;
  request.min_step = min_step;
  request.whole = true;
  const std::unique_ptr<PendingPull> parameters = connection_->StartPull(request);
  std::vector<std::unique_ptr<PendingPull>> pulls;
  const auto start = [&] {
    pulls.push_back(connection_->StartRowPull(request, to.parts[pulls.size()]));
  };
  // Several servers take a session's pulls one after the other.
  const bool together = welcome_->servers.size() < 2;
  while (together && pulls.size() < to.parts.size()) start();
  auto header = parameters->Read(to.parameters);
  if (!header.ok()) return header;
  *newest = header->step;
  absl::Span<float> left = to.rows;
  for (size_t i = 0; i < to.parts.size(); ++i) {
    if (i == pulls.size()) start();
    const uint64_t size = ElementsOf(to.parts[i], request_.layout.tables());
    const auto rows = pulls[i]->Read(left.first(size));
    if (!rows.ok()) return rows.status();
    left.remove_prefix(size);
    const bool same = rows->step == header->step && rows->incarnation == header->incarnation;
    if (!same) *newest = std::max({*newest, rows->step, header->step.Next()});
  }
  return header;
}

}  // namespace sluice
