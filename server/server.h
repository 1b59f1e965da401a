// A whole server, from the start to the end of the job. Used by sluice_server and by Job.
//
// Usually it has one incarnation. Another may follow, from a checkpoint: with
// --on-divergence=restore, and when another server of the job was started again. To workers that is
// a server which was killed and started again.

#ifndef SLUICE_SERVER_SERVER_H_
#define SLUICE_SERVER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/idle_memory.h"
#include "common/net/address.h"
#include "common/net/private_directory.h"
#include "common/trace/trace.h"
#include "server/events/event_files.h"
#include "server/incarnation.h"
#include "server/metrics/server_metrics.h"
#include "server/named_models.h"
#include "server/observe/job_moment.h"
#include "server/server_options.h"
#include "server/shard/shard.h"
#include "server/step_wait_log.h"
#include "server/web/http/http_server.h"
#include "server/web/page/live_page.h"
#include "server/web/page/operator_page.h"
#include "server/web/page/runs_page.h"

namespace sluice {

// Start() and Serve() are called by one thread. Any thread may call address().
class Server {
 public:
  // Restores the state in options.durable.directory, if there is one, and starts to listen. Blocks
  // SIGINT, SIGTERM and SIGHUP in the calling thread. That thread must be the only one of the
  // process that can receive them, and must be the one that calls Serve(). Errors are those of
  // ServerIncarnation::Start(), and of files that cannot be created.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);

  const Address& address() const { return *options_.listen; }

  // Serves until the job is over, or until SIGINT, SIGTERM, SIGHUP or Admin's Drain; then it
  // drains. All calls have ended when it returns. Returns the process's exit code: 0; 1 if it could
  // not go back to a checkpoint, or if another server of the job was lost, which the log explains;
  // 3 if training ended because every worker was lost, or if all other ranks of the launch ended
  // before one had joined; 4 if the counters of pushes do not balance, which is a bug; 5 if the
  // last checkpoint could not be saved; 7 if training diverged and the job ended because of that; 8
  // if every worker was lost, and gradients that were not finite were refused. No last checkpoint
  // is saved with code 1, or if training diverged.
  int Serve();

  // After Serve(): the table for people, of the last incarnation; see closing_table.h. A line for
  // each model with a name follows. Empty after code 1.
  std::string ClosingTable() const;

  // The shard of the current incarnation, of the model without a name. A server that may go back
  // changes it inside Serve(). After code 1 there is none, and nobody may call this.
  const Shard& shard() const { return incarnation_->shard(); }

 private:
  Server(ServerOptions options, std::unique_ptr<Trace> trace);

  absl::Status ServeHttp();
  void BeginSpans();
  void TakeIncarnation(std::unique_ptr<ServerIncarnation> incarnation);
  std::unique_ptr<LivePage> MakePage() const;
  JobMoment Moment(const ShardStatus& state, bool going_down = false) const;
  absl::StatusOr<int> AwaitEnd();
  bool IsLeftAlone(const ShardStatus& state) const;
  bool OnlyNamedTrain() const;
  bool IsOver() const;
  absl::StatusOr<bool> GoBack(const ShardStatus& state);
  absl::StatusOr<bool> GoBackForReplica(const ReplicaLoss& loss);
  void EndForNext();
  void AwaitFarewell();
  std::string LostReplica(bool finished) const;
  int Outcome(bool finished) const;
  void EndReplicas(int exit_code);
  absl::Status SaveLast();
  absl::Status SaveWithReplicas();
  std::string HowToGoBack(const ShardStatus& state);

  ServerOptions options_;  // of the current incarnation; `listen` is where it listens
  StepWaitLog step_wait_log_;
  IdleMemory idle_memory_;
  const std::unique_ptr<Trace> trace_;
  std::unique_ptr<PrivateDirectory> directory_;
  ServerMetrics metrics_;
  OperatorPage operator_page_;
  std::unique_ptr<NamedModels> named_;  // null: the job may have none
  std::unique_ptr<ServerIncarnation>
      incarnation_;  // of the model without a name; null only after an error of GoBack()
  std::unique_ptr<LivePage> page_;       // or null
  std::unique_ptr<RunsPage> runs_page_;  // null if there is no page
  std::unique_ptr<EventFiles> event_files_;
  HttpListeners http_;            // reads the others, so it is destroyed first
  absl::optional<uint32_t> crc_;  // of the parameters, at the end
  int returns_ = 0;               // how often it has gone back
  bool left_alone_ = false;       // all other ranks ended before one joined
};

}  // namespace sluice

#endif  // SLUICE_SERVER_SERVER_H_
