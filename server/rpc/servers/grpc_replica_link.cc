#include "server/rpc/servers/grpc_replica_link.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "server/rpc/servers/command_messages.h"
#include "server/rpc/servers/report_messages.h"

namespace sluice {
namespace {

// How long the call of a process that is gone may seem open to others that come in its place.
constexpr absl::Duration kStillEnding = absl::Seconds(2);

}  // namespace

GrpcReplicaLink::GrpcReplicaLink(const Place& place, const Clock& clock)
    : place_(place), clock_(clock), check_(place.index, place.servers) {}

void GrpcReplicaLink::Listen(ReplicaReportListener report, ReplicaLossListener lost) {
  report_ = std::move(report);
  lost_listener_ = std::move(lost);
}

std::string GrpcReplicaLink::Name() const {
  return absl::StrCat("server ", place_.index, " of ", place_.servers);
}

void GrpcReplicaLink::Send(const ReplicaCommand& command) {
  absl::MutexLock lock(&mu_);
  if (lost_) return;
  check_.Note(command);
  end_.Send(ToProto(command));
  if (end_.kept() > kMostKept) {
    Lose({absl::StrCat(Name(), " is away, and ", end_.kept(), " commands wait for it")});
  }
}

// ---- Calls ----

// Another process may take the place of one that was told nothing. A server that is started again
// at once may call before the end of the other one's call is seen.
absl::Status GrpcReplicaLink::CheckProcess(const v1::HolderHello& hello) {
  const ProcessNonce process(hello.process_nonce());
  if (process_ == process || process_ == ProcessNonce()) return absl::OkStatus();
  if (call_ != nullptr) {
    if (!claimed_.has_value()) claimed_ = clock_.Now();
    if (clock_.Now() < *claimed_ + kStillEnding) {
      return absl::UnavailableError(
          absl::StrCat(Name(), " has another process, whose connection has not ended yet"));
    }
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("another process follows as ", Name(), ", at ", state_.address,
                                  "; start each server of the job with an index of its own"));
  }
  if (end_.sent() == 0) return absl::OkStatus();
  if (place_.saves) {
    Lose({absl::StrCat(Name(), " was started again"), /*is_back=*/true});
    return absl::UnavailableError("all servers go back to the last checkpoint; call again");
  }
  if (!lost_) {
    return absl::UnavailableError(
        absl::StrCat(Name(), " has another process, whose connection broke, and which may return"));
  }
  return MakeError(Reason::kNotInitialized,
                   absl::StrCat(Name(),
                                " was started again, and its part of the parameters is "
                                "lost; the job cannot go on"));
}

absl::Status GrpcReplicaLink::Begin(const v1::HolderHello& hello, uint64_t taken,
                                    v1::SequencerHello answer, std::shared_ptr<FollowCall> call) {
  std::shared_ptr<FollowCall> earlier;
  {
    absl::MutexLock lock(&mu_);
    if (!closed_.ok()) return closed_;
    const absl::Status known = CheckProcess(hello);
    if (!known.ok()) return known;
    const ProcessNonce process(hello.process_nonce());
    // Commands may wait for the first process. Another one starts the numbers anew.
    const bool replaces = process_ != ProcessNonce() && process != process_;
    if (replaces) end_ = LinkEnd<v1::SequencerMessage>();
    const absl::Status heard = end_.Hear(taken);
    if (!heard.ok()) return heard;
    process_ = process;
    claimed_ = absl::nullopt;
    state_.address = hello.address();
    state_.connected = true;
    state_.since = state_.heard = clock_.Now();
    earlier = std::exchange(call_, call);
    v1::SequencerMessage message;
    message.set_taken(end_.taken());
    *message.mutable_hello() = std::move(answer);
    call->Write(std::make_shared<const v1::SequencerMessage>(std::move(message)));
    end_.Begin(*call, taken).IgnoreError();  // it was heard above
  }
  LOG(INFO) << Name() << " follows, at " << Shown(hello.address());
  if (earlier != nullptr) earlier->End(absl::UnavailableError("the replica has called again"));
  return absl::OkStatus();
}

void GrpcReplicaLink::End(const FollowCall& call) {
  absl::MutexLock lock(&mu_);
  if (call_.get() != &call) return;
  end_.End();
  call_ = nullptr;
  claimed_ = absl::nullopt;
  state_.connected = false;
  state_.since = clock_.Now();
  LOG_IF(WARNING, closed_.ok()) << "the connection to " << Name() << " is broken";
}

absl::Status GrpcReplicaLink::Take(const FollowCall& call, const v1::HolderMessage& message) {
  absl::MutexLock receive_lock(&receive_mu_);
  absl::Status taken;
  {
    absl::MutexLock lock(&mu_);
    if (call_.get() != &call) return absl::UnavailableError("the replica has called again");
    state_.heard = clock_.Now();
    taken = end_.Hear(message.taken());
    if (message.has_figures()) state_.figures = FromProto(message.figures());
  }
  if (taken.ok()) taken = TakeReport(message);
  if (taken.ok()) return taken;
  absl::MutexLock lock(&mu_);
  Lose({absl::StrCat(Name(), " breaks the protocol: ", taken.message())});
  return taken;
}

absl::Status GrpcReplicaLink::TakeReport(const v1::HolderMessage& message) {
  const bool any = message.message_case() != v1::HolderMessage::MESSAGE_NOT_SET;
  if (message.number() == 0 && !any) return absl::OkStatus();
  const absl::StatusOr<ReplicaReport> report = FromProto(message);
  if (!report.ok()) return report.status();
  {
    absl::MutexLock lock(&mu_);
    if (!end_.Take(message.number())) return absl::OkStatus();
    const absl::Status sound = check_.Take(*report);
    if (!sound.ok()) return sound;
  }
  report_(place_.index, *report);
  return absl::OkStatus();
}

// ---- State ----

void GrpcReplicaLink::Lose(const ReplicaLoss& loss) {
  if (std::exchange(lost_, true)) return;
  lost_listener_(loss);
}

ReplicaLinkState GrpcReplicaLink::state() const {
  absl::MutexLock lock(&mu_);
  return state_;
}

bool GrpcReplicaLink::silent() const {
  absl::MutexLock lock(&mu_);
  const bool came = process_ != ProcessNonce() && closed_.ok();
  return came && (call_ == nullptr || clock_.Now() - state_.heard > kSilence);
}

ServerStatus GrpcReplicaLink::Describe() const {
  const ReplicaLinkState state = this->state();
  ServerStatus server;
  server.address = state.address;
  server.figures = state.figures;
  server.connected = state.connected;
  if (!state.address.empty()) server.unchanged = clock_.Now() - state.since;
  return server;
}

void GrpcReplicaLink::Acknowledge() {
  absl::MutexLock lock(&mu_);
  end_.Acknowledge();
}

void GrpcReplicaLink::CheckLease(absl::Duration lease) {
  absl::MutexLock lock(&mu_);
  const bool told = process_ != ProcessNonce() && end_.sent() > 0;
  if (!told || call_ != nullptr || !closed_.ok()) return;
  if (clock_.Now() - state_.since <= lease) return;
  const std::string what_next =
      place_.saves ? "; to go on from the last checkpoint, start the job again, on as many servers "
                     "as there are"
                   : ", and its part of the parameters is lost; the job cannot go on";
  Lose({absl::StrCat(Name(), ", at ", state_.address,
                     ", has been away for longer than the lease of ", absl::FormatDuration(lease),
                     what_next)});
}

bool GrpcReplicaLink::AllTaken() const {
  absl::MutexLock lock(&mu_);
  return call_ == nullptr || end_.kept() == 0;
}

void GrpcReplicaLink::Close(const absl::Status& why) {
  std::shared_ptr<FollowCall> call;
  {
    absl::MutexLock lock(&mu_);
    closed_ = why;
    call = call_;
  }
  if (call != nullptr) call->End(why);
}

}  // namespace sluice
