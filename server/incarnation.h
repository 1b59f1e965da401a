// One incarnation of a server: a model, the links to other servers, and the gRPC server. It begins
// when the state is restored, and ends when the last call has ended. Server makes it.

#ifndef SLUICE_SERVER_INCARNATION_H_
#define SLUICE_SERVER_INCARNATION_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/serial_executor.h"
#include "common/net/address.h"
#include "common/trace/trace.h"
#include "server/durable/directory.h"
#include "server/hosted_model.h"
#include "server/named_models.h"
#include "server/rpc/server.h"
#include "server/rpc/servers/replica_links.h"
#include "server/server_options.h"
#include "server/shard/shard.h"

namespace sluice {

// Start() and Shutdown() are called by one thread, the others by any.
//
// With several servers and a directory, Start() returns before the state is restored. The thread
// sluice-recover restores it when the other servers have connected, and their directories belong
// together; workers wait. If that fails, lost_replica() says why. No file is changed before all
// servers have loaded their stripes.
class ServerIncarnation {
 public:
  // Restores the state in options.durable.directory, if there is one, and listens on
  // options.listen, which is set. `trace` and `named`, which may be null, outlive the incarnation;
  // `named` is restored, too. Errors are those of HostedModel, NamedModels::Restore() and
  // StartGrpcServer().
  //
  // One that goes back from the state `left` has a directory. It keeps the consistency rules of
  // `left` and, if the server applies the optimizer, half of its learning rate. Workers are told of
  // the steps that they lose. Saves a checkpoint of that; if it cannot, it only logs why.
  static absl::StatusOr<std::unique_ptr<ServerIncarnation>> Start(
      const ServerOptions& options, Trace* trace, NamedModels* named,
      const absl::optional<ShardStatus>& left = absl::nullopt);

  // Ends the calls, then waits for the work that they have begun.
  ~ServerIncarnation();

  // First waits until the journal is on the disk, unless it cannot be written. Answers that are
  // still held then fail with `why`. Then ends all calls, within `grace`, and waits for the work
  // that they have begun.
  void Shutdown(const absl::Status& why, absl::Duration grace);

  // Ends leases and waits that are over. Call it every `options.shard.tick`.
  void Tick();

  // With several servers: the first of the others that was lost, or why the state
  // cannot be restored; empty if all is well.
  ReplicaLoss lost_replica() const ABSL_LOCKS_EXCLUDED(mu_);
  // Which of the others has come and is not connected; empty: none is. See ReplicaLinks::Away().
  std::string away_replica() const;
  // Waits for no other server from now on, and makes no step.
  void StopWaiting(const absl::Status& why);
  // Makes no step from now on, and tells the other servers that the job is over: that they end with
  // that code. Once, before Shutdown().
  void EndReplicas(int exit_code);
  // Whether those that are connected have heard it.
  bool ReplicasHaveEnded() const { return replicas_ == nullptr || replicas_->AllTaken(); }

  // See HostedModel.
  bool deserted() const { return model_->deserted(); }
  bool drained() const { return model_->drained(); }
  Shard& shard() { return model_->shard(); }
  const Shard& shard() const { return model_->shard(); }
  DurableDirectory* durable() const { return model_->durable(); }
  const Address& address() const { return grpc_server_->address(); }

 private:
  ServerIncarnation(const ServerOptions& options, std::unique_ptr<HostedModel> model);

  absl::Status Recover(const absl::optional<ShardStatus>& left);
  void RecoverWithOthers(const absl::optional<ShardStatus>& left);
  absl::Status ContinueFrom(const ShardStatus& left);
  absl::Status Listen(const ServerOptions& options, NamedModels* named);
  void LeadReplicas();
  void OnReport(uint32_t replica, const ReplicaReport& report) ABSL_LOCKS_EXCLUDED(mu_);
  void OnCame(uint32_t replica, const FoundFiles& found) ABSL_LOCKS_EXCLUDED(mu_);
  void OnLost(const ReplicaLoss& loss) ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  ReplicaLoss lost_replica_ ABSL_GUARDED_BY(mu_);
  // Null if there is one server.
  const std::unique_ptr<ReplicaLinks> replicas_;
  const std::unique_ptr<HostedModel> model_;
  std::unique_ptr<GrpcServer> grpc_server_;
  SerialExecutor recovering_{"sluice-recover"};
};

}  // namespace sluice

#endif  // SLUICE_SERVER_INCARNATION_H_
