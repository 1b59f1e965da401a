#include "server/replica_server.h"

#include <glog/logging.h>
#include <string.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "server/private_socket.h"
#include "server/replica_incarnation.h"
#include "server/rpc/listening/open_files.h"
#include "server/stop_signals.h"
#include "server/tables/disk/disk_file.h"

namespace sluice {
namespace {

constexpr int kNoFirstServer = 1;
constexpr int kRefused = 2;
constexpr absl::Duration kCallPause = absl::Milliseconds(200);  // between two calls of Follow
constexpr absl::Duration kUnknownSessions = absl::Seconds(10);  // see WorkerCalls::EndUnknown()

bool CallsAgain(const absl::Status& ended) {
  return absl::IsUnavailable(ended) && ReasonOf(ended) == Reason::kNone;
}

absl::Status CheckIndex(const ReplicaServerOptions& options) {
  if (options.index >= 1 && options.index < options.servers) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("server ", options.index, " of ", options.servers,
                                " holds no stripe beside the first server's; expected an index "
                                "from 1 to the number of servers minus 1"));
}

class FollowingServer final : public ReplicaServer {
 public:
  explicit FollowingServer(ReplicaServerOptions options) : options_(std::move(options)) {}

  absl::Status Listen() {
    if (!options_.listen.has_value()) {
      auto chosen = ChoosePrivateSocket(options_.directory);
      if (!chosen.ok()) return chosen.status();
      options_.listen = chosen->address;
      directory_ = std::move(chosen->directory);
    }
    if (!options_.table_directory.empty()) {
      auto disk = RowDisk::Open(options_.table_directory);
      if (!disk.ok()) return disk.status();
      options_.table_memory.disk = *std::move(disk);
    }
    auto started = ReplicaIncarnation::Start(options_);
    if (!started.ok()) return started.status();
    incarnation_ = *std::move(started);
    options_.listen = incarnation_->address();
    LOG(INFO) << "server " << options_.index << " of " << options_.servers << ": listening on "
              << address().ToString()
              << (options_.credentials != nullptr ? ", with mutual TLS" : "");
    return absl::OkStatus();
  }

  const Address& address() const override { return *options_.listen; }

  int Serve() override {
    absl::optional<int> code;
    until_ = RealClock().Now() + options_.connect_timeout;
    while (!code.has_value()) code = Look(WaitForStopSignal());
    ended_by_first_ = incarnation_ != nullptr && replica().exit_code().has_value();
    if (ended_by_first_) AwaitFarewell();
    directory_ = nullptr;
    if (incarnation_ != nullptr) incarnation_->Shutdown(options_.grace);
    return *code;
  }

  bool ended_by_first_server() const override { return ended_by_first_; }

 private:
  Replica& replica() { return incarnation_->replica(); }
  LeaderLink& link() { return incarnation_->link(); }
  bool saves() const { return !options_.checkpoint_directory.empty(); }

  // One tick. Returns the exit code if this server ends.
  absl::optional<int> Look(int signal) {
    if (replica().exit_code().has_value()) return replica().exit_code();
    const absl::Time now = RealClock().Now();
    if (signal != 0) Stop(signal, now);
    const bool saves_last = saves() && link().accepted();
    if (now > stops_at_ && !saves_last) {
      LOG(ERROR) << "ends without the first server, which has not ended the job";
      return kNoFirstServer;
    }
    link().Acknowledge();
    if (link().accepted()) NoteConnected(now);
    const auto ended = calls_at_.has_value() ? absl::nullopt : link().ended();
    if (ended.has_value()) return AfterCall(*ended, now);
    if (now > until_) return GiveUp();
    const bool calls = calls_at_.has_value() && now >= *calls_at_;
    return calls ? Call() : absl::nullopt;
  }

  void Stop(int signal, absl::Time now) {
    LOG(INFO) << "ends after " << strsignal(signal) << ", when the first server ends the job";
    stops_at_ = std::min(stops_at_, now + options_.grace);
  }

  void NoteConnected(absl::Time now) {
    LOG_IF(INFO, !connected_) << "follows the first server, at " << options_.leader;
    connected_ = true;
    met_ = true;
    until_ = now + options_.lease;
    if (now < unknown_at_) return;
    replica().calls().EndUnknown();
    unknown_at_ = now + kUnknownSessions;
  }

  absl::optional<int> Call() {
    calls_at_.reset();
    const absl::Status begun = link().Call();
    if (begun.ok()) return absl::nullopt;
    LOG(ERROR) << begun.message();
    return kRefused;
  }

  absl::optional<int> AfterCall(const absl::Status& ended, absl::Time now) {
    if (saves() && ReasonOf(ended) == Reason::kNotInitialized) return BeginAnew(now);
    if (!CallsAgain(ended)) return GiveUpFor(ended);
    LOG_IF(WARNING, connected_) << "the connection to the first server is broken: "
                                << ended.message();
    LOG_IF(INFO, why_.empty() && !connected_)
        << "waits for the first server, at " << options_.leader << ": " << ended.message();
    // This process may have stood still for longer than a lease.
    if (connected_) until_ = now + options_.lease;
    connected_ = false;
    why_ = std::string(ended.message());
    calls_at_ = now + kCallPause;
    return absl::nullopt;
  }

  // The leader has begun another incarnation, to which this one's stripe is of no use.
  absl::optional<int> BeginAnew(absl::Time now) {
    LOG(INFO) << "the first server has begun a new incarnation, which this server joins";
    incarnation_ = nullptr;  // the address is free then
    auto started = ReplicaIncarnation::Start(options_);
    if (!started.ok()) {
      LOG(ERROR) << "cannot begin anew: " << started.status().message();
      return kNoFirstServer;
    }
    incarnation_ = *std::move(started);
    connected_ = false;
    calls_at_ = now;
    return absl::nullopt;
  }

  int GiveUpFor(const absl::Status& ended) {
    const bool no_method = absl::IsUnimplemented(ended);
    LOG(ERROR) << "the first server, at " << options_.leader << ", refuses server "
               << options_.index << " of " << options_.servers << ": "
               << (no_method ? "it runs a job with one server" : ended.message());
    return ReasonOf(ended) == Reason::kNotInitialized ? kNoFirstServer : kRefused;
  }

  int GiveUp() {
    LOG(ERROR) << "cannot reach the first server, at " << options_.leader
               << (met_ ? ", any more: " : ": ") << (why_.empty() ? "it does not answer" : why_)
               << (met_ ? "" : HintAtStart());
    return kNoFirstServer;
  }

  // A peer that is refused in the handshake is not told why.
  std::string HintAtStart() const {
    if (options_.credentials == nullptr) return "; is it running, and without TLS, as this server?";
    return "; is it running, with TLS, and has this server's certificate the role sluice:server?";
  }

  // The leader waits until this server has taken the end of the job, then it ends the call.
  void AwaitFarewell() {
    LOG(INFO) << "the first server has ended the job";
    const absl::Time until = RealClock().Now() + options_.grace;
    link().Acknowledge();
    while (!link().ended().has_value() && RealClock().Now() < until) WaitForStopSignal();
  }

  ReplicaServerOptions options_;
  std::unique_ptr<PrivateDirectory> directory_;
  std::unique_ptr<ReplicaIncarnation> incarnation_;  // null only after an error of BeginAnew()
  // Only the main thread uses these.
  absl::optional<absl::Time> calls_at_ = absl::InfinitePast();  // absent: a call is open
  absl::Time until_ = absl::InfiniteFuture();     // then it gives up, without the leader
  absl::Time stops_at_ = absl::InfiniteFuture();  // after a signal
  absl::Time unknown_at_ = absl::InfinitePast();
  bool connected_ = false;
  bool met_ = false;  // the leader has accepted this server once
  bool ended_by_first_ = false;
  std::string why_;  // the latest call has ended
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaServer>> ReplicaServer::Start(ReplicaServerOptions options) {
  const absl::Status index = CheckIndex(options);
  if (!index.ok()) return index;
  RaiseOpenFilesLimit();
  BlockStopSignals();
  auto server = std::make_unique<FollowingServer>(std::move(options));
  const absl::Status listens = server->Listen();
  if (!listens.ok()) return listens;
  return std::unique_ptr<ReplicaServer>(std::move(server));
}

}  // namespace sluice
