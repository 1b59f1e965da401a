// The leader's links to the replicas of a job, and the service Sequencer, which the replicas call.
// sequencer.proto has the protocol.
//
// A link outlives its calls. While the connection to a replica is broken, commands are kept. They
// are few, because training waits for that replica; a link that keeps kMostKept of them is lost.

#ifndef SLUICE_SERVER_RPC_SERVERS_REPLICA_LINKS_H_
#define SLUICE_SERVER_RPC_SERVERS_REPLICA_LINKS_H_

#include <grpcpp/impl/service_type.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "server/replica/replica_link.h"
#include "server/rpc/servers/grpc_replica_link.h"
#include "server/state/found_files.h"

namespace sluice {

struct ReplicaLinksOptions {
  std::string job_id;
  uint32_t servers = 2;  // of the job, with the leader's own
  Incarnation incarnation;
  SessionId session_base;      // see ShardOptions
  ProcessNonce process_nonce;  // drawn for each incarnation of the leader
  // How long a replica whose connection broke may be away.
  absl::Duration lease = absl::InfiniteDuration();
  bool saves = false;     // whether the servers have directories for checkpoints
  bool journals = false;  // whether they also write journals
};

// Called for each replica that comes, with the files that it has found in its directory.
using ReplicaCameListener = std::function<void(uint32_t replica, const FoundFiles& found)>;

// Any thread may call any method.
class ReplicaLinks {
 public:
  // `clock` outlives it.
  ReplicaLinks(ReplicaLinksOptions options, const Clock& clock);

  // `report` gets the reports of each replica. `lost` is called once for each replica whose part of
  // the parameters is lost. The thread that calls `lost` may hold the locks under which commands
  // are sent, so `lost` must not take these locks. `came` may be null. Call Listen() before the
  // service is registered.
  void Listen(ReplicaReportListener report, ReplicaLossListener lost,
              ReplicaCameListener came = nullptr);

  // To the replicas 1, 2, … Valid as long as this object.
  std::vector<ReplicaLink*> links() const;
  // In the same order.
  std::vector<ReplicaLinkState> states() const;
  // Of all servers, the leader first, with what is known here: their addresses, and how the
  // replicas are connected and what they have told.
  std::vector<ServerStatus> Describe() const ABSL_LOCKS_EXCLUDED(mu_);

  // Where workers reach the leader; once, when it listens.
  void SetAddress(std::string address) ABSL_LOCKS_EXCLUDED(mu_);
  // Where workers reach each server, the leader first. UNAVAILABLE without a reason unless each
  // replica has come: "server 2 of 3 has not come yet".
  absl::StatusOr<std::vector<std::string>> Addresses() const ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until each replica has come and `came` was called for it. Returns false if StopAwaiting()
  // was called before.
  bool AwaitAll() const ABSL_LOCKS_EXCLUDED(mu_);
  void StopAwaiting() ABSL_LOCKS_EXCLUDED(mu_);

  // Acknowledges what was heard, and ends leases that are over. Call it several times a second.
  void Tick();
  // Names a replica that has come and is not connected: "server 2 of 3, at host:7070, is away".
  // Empty: there is none.
  std::string Away() const;
  // Whether every replica that is connected has taken all commands.
  bool AllTaken() const;
  // Ends the calls, and refuses others, with `why`.
  void Close(const absl::Status& why);

  // For a call of Follow: the link of the replica that `hello` names, or the error.
  absl::StatusOr<GrpcReplicaLink*> Find(const v1::HolderHello& hello) const;
  v1::SequencerHello Hello() const;
  // The replica that `hello` names has come. Call it before anything that follows `hello` is
  // handled.
  void NoteCame(const v1::HolderHello& hello) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const ReplicaLinksOptions options_;
  std::vector<std::unique_ptr<GrpcReplicaLink>> links_;  // of replicas 1, 2, …
  ReplicaCameListener came_;                             // or null
  mutable absl::Mutex mu_;
  std::set<uint32_t> have_come_ ABSL_GUARDED_BY(mu_);
  bool awaits_ ABSL_GUARDED_BY(mu_) = true;
  std::string address_ ABSL_GUARDED_BY(mu_);  // empty: it does not listen yet
};

// The service. `links` outlives it.
std::unique_ptr<grpc::Service> MakeGrpcSequencer(ReplicaLinks& links);

}  // namespace sluice

#endif  // SLUICE_SERVER_RPC_SERVERS_REPLICA_LINKS_H_
