// The leader's link to one replica over the calls of Follow.

#ifndef SLUICE_SERVER_RPC_SERVERS_GRPC_REPLICA_LINK_H_
#define SLUICE_SERVER_RPC_SERVERS_GRPC_REPLICA_LINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/replica/replica_link.h"
#include "server/replica/report_check.h"
#include "server/rpc/servers/link_end.h"
#include "server/state/server_status.h"
#include "sluice/v1/sequencer.pb.h"

namespace sluice {

using ReplicaReportListener = std::function<void(uint32_t replica, const ReplicaReport&)>;

// A replica whose part of the parameters is lost.
struct ReplicaLoss {
  std::string why;       // empty: none is lost
  bool is_back = false;  // its process was started again, and may load a checkpoint
};
// Takes no lock that is held by who sends commands.
using ReplicaLossListener = std::function<void(const ReplicaLoss&)>;

// What an operator sees of a link.
struct ReplicaLinkState {
  std::string address;  // where workers reach the replica; empty before it has come
  bool connected = false;
  absl::Time since = absl::InfinitePast();  // it is connected, or not connected
  absl::Time heard = absl::InfinitePast();  // when the latest message came
  StripeFigures figures;                    // which the replica has told last
};

// The call of a replica, as its link sees it.
class FollowCall : public MessageWriter<v1::SequencerMessage> {
 public:
  // Ends the call, unless it has ended. Does not wait.
  virtual void End(const absl::Status& why) = 0;
};

// Any thread may call any method. Reports are heard one after the other.
class GrpcReplicaLink final : public ReplicaLink {
 public:
  static constexpr size_t kMostKept = size_t{1} << 20;  // commands that are not acknowledged
  // So long after its latest message a replica is silent. It sends one at each of its ticks.
  static constexpr absl::Duration kSilence = absl::Milliseconds(500);

  struct Place {
    uint32_t index = 1;
    uint32_t servers = 2;
    bool saves = false;  // whether the servers have checkpoints
  };
  // `clock` outlives it.
  GrpcReplicaLink(const Place& place, const Clock& clock);

  void Listen(ReplicaReportListener report, ReplicaLossListener lost);

  void Send(const ReplicaCommand& command) override ABSL_LOCKS_EXCLUDED(mu_);
  bool silent() const override ABSL_LOCKS_EXCLUDED(mu_);

  // A replica follows with `call`, on which the leader's hello was not written yet. It may end an
  // earlier call of the same process. Errors are those of sequencer.proto.
  absl::Status Begin(const v1::HolderHello& hello, uint64_t taken, v1::SequencerHello answer,
                     std::shared_ptr<FollowCall> call) ABSL_LOCKS_EXCLUDED(mu_, receive_mu_);
  // The next message of the call, which is whole. BAD_ARGUMENT if it is wrong; the link is lost
  // then.
  absl::Status Take(const FollowCall& call, const v1::HolderMessage& message)
      ABSL_LOCKS_EXCLUDED(mu_, receive_mu_);
  // The call has ended, or is about to.
  void End(const FollowCall& call) ABSL_LOCKS_EXCLUDED(mu_);

  ReplicaLinkState state() const ABSL_LOCKS_EXCLUDED(mu_);
  ServerStatus Describe() const ABSL_LOCKS_EXCLUDED(mu_);  // without what only a shard knows
  void Acknowledge() ABSL_LOCKS_EXCLUDED(mu_);
  // A replica that was told anything and has been away for longer than `lease` is lost: it has
  // given up, too.
  void CheckLease(absl::Duration lease) ABSL_LOCKS_EXCLUDED(mu_);
  bool AllTaken() const ABSL_LOCKS_EXCLUDED(mu_);  // or not connected
  void Close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status CheckProcess(const v1::HolderHello& hello) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TakeReport(const v1::HolderMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(receive_mu_);
  // Tells it once.
  void Lose(const ReplicaLoss& loss) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string Name() const;

  const Place place_;
  const Clock& clock_;
  ReplicaReportListener report_;
  ReplicaLossListener lost_listener_;
  absl::Mutex receive_mu_;  // held while a report is taken and heard; taken before mu_
  mutable absl::Mutex mu_;
  LinkEnd<v1::SequencerMessage> end_ ABSL_GUARDED_BY(mu_);
  ReportCheck check_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<FollowCall> call_ ABSL_GUARDED_BY(mu_);  // the open one, or null
  ProcessNonce process_ ABSL_GUARDED_BY(mu_);              // of the replica; 0: none has come
  // When another process called first while call_ is open.
  absl::optional<absl::Time> claimed_ ABSL_GUARDED_BY(mu_);
  ReplicaLinkState state_ ABSL_GUARDED_BY(mu_);
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mu_);  // OK: it is not
};

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_GRPC_REPLICA_LINK_H_
