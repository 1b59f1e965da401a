// Starts a process as a server or a worker of a job, and tells a worker how to reach the server.
//
// A program's main() calls it first. Launched by mpirun, rank 0 becomes the server and the others
// become workers; with --sluice-servers=S, rank 0 and S - 1 others become servers, one on each node
// first. With --sluice-server=host:port every process becomes a worker, with MPI or without.
//
//   auto job = sluice::Job::Start(&argc, &argv);
//   if (job.is_server()) return job.Serve();

#ifndef SLUICE_WORKER_JOB_H_
#define SLUICE_WORKER_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/protocol/attachment.h"

namespace sluice {

class JobServer;
class Layout;
class ProgramOptimizer;
class TransformRegistry;
class WorkerContext;
struct JobFlags;
struct OptimizerConfig;

// The settings that a program gives its job in addition to the command line. All processes of the
// job must give the same.
struct JobOptions {
  uint64_t pushes = 0;  // see SetPushes(); 0: unknown
  // Called on the server with what workers attach to their pushes. Null: nobody reads attachments.
  AttachmentHook on_attachments;
  // Makes the server's optimizer, where it is to be one of the program's (program_optimizer.h).
  // Null: the server has Sluice's alone. A job with several servers has it for none.
  std::function<absl::StatusOr<std::unique_ptr<ProgramOptimizer>>(const Layout&,
                                                                  const OptimizerConfig&)>
      program_optimizer;
  // The transforms of encodings, if the program adds its own (common/encoding/README.md). Null:
  // Sluice's own. Only the calls below read it.
  const TransformRegistry* transforms = nullptr;
  // Whether Sluice's flags are also taken without the prefix: --mode=async as --sluice-mode=async.
  // A flag of the program's own that has the name of one of Sluice's then never reaches it.
  bool takes_all_flags = false;
  // Whether flags of a server in the command line of a worker whose server runs elsewhere are an
  // error. False: they are ignored, as if a program that has several launches had written them.
  bool refuses_server_flags = true;
};

// Owns the server if this process is one. All methods are for the main thread.
class Job {
 public:
  // Removes Sluice's flags, such as --sluice-mode=async, from the command line and takes part in
  // the launch. What is left there is the program's. A flag that looks like one of Sluice's without
  // the prefix (--push-encoding) is left, and a warning names it. A worker whose
  // server is in the same launch then outlives it: SIGTERM and SIGINT end it two seconds later,
  // unless the program handled them before (common/launch/outlive_server.h). Called first in main,
  // once. On an error it prints the reason to stderr and exits: with 2 for a wrong command line,
  // else with 1. With --help, it lists Sluice's flags and exits with 0.
  //
  // A program that uses MPI itself initialises it before this call and finalizes it after its
  // optimizer is gone, on all ranks: then Sluice uses MPI as it is. Otherwise MPI is finalized when
  // this returns, and cannot be used any more.
  static Job Start(int* argc, char*** argv, const JobOptions& options = {});

  // The same, but returns errors instead of exiting; --help is none of its flags.
  static absl::StatusOr<Job> TryStart(int* argc, char*** argv, const JobOptions& options = {});

  // The same for programs that parse their flags with CLI11 (job_flags.h). Returns errors instead
  // of exiting.
  static absl::StatusOr<Job> Start(const JobFlags& flags);

  // The job of an observer of --server. It takes part in no launch, and uses no MPI.
  static absl::StatusOr<Job> Observe(const JobFlags& flags);

  Job(Job&&) noexcept;
  ~Job();

  bool is_server() const { return server_ != nullptr; }

  // Serves until the job is over; then rank 0 prints the closing table. Returns the process's exit
  // code, which server.h lists. Only if is_server().
  int Serve();

  // Whether this worker should print its progress: worker 0 of a launch, and every worker that was
  // started by hand.
  bool speaks() const;

  // This worker's place among the workers of its launch, from 0 on, and how many they are, without
  // the servers; known before a model is made. Once it has joined, RemoteOptimizer::index() and
  // workers() are the same, unless its server runs elsewhere. Absent in a worker that was started
  // by hand, where the server chooses; a server has no rank.
  absl::optional<uint32_t> rank() const;
  absl::optional<uint32_t> size() const;

  // The name under which this worker joins.
  const std::string& name() const;

  // The job of one more worker in this process, with a name of its own. It has no trace, and the
  // server chooses its index.
  Job WorkerNamed(const std::string& name) const;

  // The job as the model of that name sees it, in a job that has several: a model has parameters,
  // an optimizer, steps and workers of its own, as if it were a job by itself. Rank and size are
  // this worker's; it has no trace. A name has at most 64 letters, digits, dots, hyphens and
  // underscores, the first a letter or a digit; else BAD_ARGUMENT. FAILED_PRECONDITION if
  // is_server(). An optimizer may outlive what this returns:
  //
  //   sluice::RemoteOptimizer optimizer(*job.Model("critic"), *critic, options);
  //
  // From the first named model on that joins, the job does not end before this process has ended,
  // or has destroyed its Jobs and their optimizers. A server that is too old, or whose job cannot
  // have several models, refuses that join.
  absl::StatusOr<Job> Model(const std::string& name) const;

  // The names of the job's models that have one, in ascending order. Waits for the server up to
  // --connect-timeout; UNIMPLEMENTED if the server is too old.
  absl::StatusOr<std::vector<std::string>> ModelNames() const;

  // Gives `data` to all workers of the launch, and returns what each has given, in the order of
  // their ranks: for what surrounds training, such as a mean of accuracies, or a choice of rank 0.
  // At most 3 MiB of all together. All workers make the same calls in the same order, each in one
  // thread. DEADLINE_EXCEEDED after `wait` names the ranks that are missing; the next call is for
  // the same exchange then. UNAVAILABLE if the server is lost. FAILED_PRECONDITION in a worker that
  // was started by hand, and has no rank.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view data,
                                                     absl::Duration wait = absl::Minutes(10)) const;

  // How this process reaches the server, for Sluice's own clients. Lives as long as the job, also
  // if that is moved.
  const WorkerContext& context() const { return *context_; }

 private:
  Job(std::unique_ptr<WorkerContext> context, std::unique_ptr<JobServer> server);

  std::unique_ptr<WorkerContext> context_;
  std::unique_ptr<JobServer> server_;  // null on a worker
};

}  // namespace sluice

#endif  // SLUICE_WORKER_JOB_H_
