// A replica's link to the leader: calls Follow, executes each command once and in order, and
// sends reports. sequencer.proto has the protocol.

#ifndef SLUICE_SERVER_RPC_SERVERS_LEADER_LINK_H_
#define SLUICE_SERVER_RPC_SERVERS_LEADER_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"
#include "common/security/credentials_source.h"
#include "server/replica/command_check.h"
#include "server/replica/replica_commands.h"
#include "server/rpc/servers/link_end.h"
#include "server/state/found_files.h"
#include "server/state/server_status.h"
#include "sluice/v1/sequencer.pb.h"

namespace sluice {

struct LeaderLinkOptions {
  std::string target;             // gRPC's, of the leader
  CredentialsSource credentials;  // for mutual TLS, over TCP alone; empty: plaintext
  std::string token;              // empty: none
  std::string job_id;             // empty: the job that the leader runs
  uint32_t index = 1;
  uint32_t servers = 2;
  ProcessNonce process_nonce;
  std::string address;  // where workers reach this server
  bool saves = false;   // whether it has a directory for checkpoints
  bool journals = false;
  FoundFiles found;  // in that directory
  // Called with SequencerHello's job and session_base each time the leader has accepted this
  // server. The call comes before the commands that follow, and outside all locks. May be empty.
  std::function<void(const std::string& job_id, SessionId session_base)> begin;
  // What this server counts. Called by Acknowledge(), and valid as long as the link; empty:
  // nothing.
  std::function<StripeFigures()> figures;
};

// Any thread may call any method, but only one calls Call() and ended().
class LeaderLink {
 public:
  // `execute` gets the commands, one at a time, outside all locks.
  LeaderLink(LeaderLinkOptions options, std::function<void(const ReplicaCommand&)> execute);
  ~LeaderLink() { Stop(); }

  // Begins a call; the one before has ended. Errors are those of the credentials.
  absl::Status Call();
  // How the latest call has ended; absent while it is open. UNAVAILABLE without a reason: call
  // again. Any other error is for good.
  absl::optional<absl::Status> ended() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the leader has taken this server in the latest call.
  bool accepted() const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the call, if one is open, and waits for it. No command is executed afterwards.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // Sends a report, now or when a call is open.
  void Report(const ReplicaReport& report) ABSL_LOCKS_EXCLUDED(mu_);
  // Acknowledges what was executed, and tells the figures. Call it at each tick: it is also the
  // sign of life without which the leader takes this server for silent.
  void Acknowledge() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Stream;

  absl::Status Take(const v1::SequencerMessage& message) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status TakeHello(const v1::SequencerMessage& message) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Begin(const v1::SequencerMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellFigures(const StripeFigures& figures) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  const LeaderLinkOptions options_;
  const std::function<void(const ReplicaCommand&)> execute_;
  mutable absl::Mutex mu_;
  LinkEnd<v1::HolderMessage> end_ ABSL_GUARDED_BY(mu_);
  CommandCheck check_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mu_);  // of the latest call; null: none
  absl::optional<absl::Status> ended_ ABSL_GUARDED_BY(mu_);
  bool accepted_ ABSL_GUARDED_BY(mu_) = false;
  ProcessNonce leader_ ABSL_GUARDED_BY(mu_);                 // 0: none was heard
  absl::optional<StripeFigures> told_ ABSL_GUARDED_BY(mu_);  // in the latest call
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_LEADER_LINK_H_
