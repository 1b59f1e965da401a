// Starts a process as the server or a worker of a job, and tells a worker how to reach the server.
//
// A program's main() calls it first. Launched by mpirun, rank 0 becomes the server and the others
// become workers. With --server=host:port every process becomes a worker, with MPI or without.
//
//   auto job = sluice::Job::Start(&argc, &argv);
//   if (job.is_server()) return job.Serve();

#ifndef SLUICE_WORKER_JOB_H_
#define SLUICE_WORKER_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/launch/job_ticket.h"
#include "common/net/address.h"
#include "common/protocol/attachment.h"
#include "common/protocol/protocol_types.h"
#include "common/security/credentials_source.h"
#include "common/trace/trace.h"
#include "worker/compression/gradient_encoder.h"
#include "worker/connection/server_connection.h"

namespace sluice {

class Server;
struct JobFlags;

// The settings that a program gives its job in addition to the command line. All processes of the
// job must give the same.
struct JobOptions {
  uint64_t pushes = 0;  // see SetPushes(); 0: unknown
  // Called on the server with what workers attach to their pushes. Null: nobody reads attachments.
  AttachmentHook on_attachments;
  // The transforms of encodings: Sluice's own and those that the program adds.
  TransformRegistry transforms = BuiltinTransforms();
};

// Owns the server if this process is one. All methods are for the main thread.
class Job {
 public:
  // Removes Sluice's flags from the command line and takes part in the launch. A worker whose
  // server is in the same launch then outlives it: SIGTERM and SIGINT end it two seconds later,
  // unless the program handled them before (common/launch/outlive_server.h). Called first in main,
  // once. On an error it prints the reason to stderr and exits: with 2 for a wrong command line,
  // else with 1. With --help, it lists Sluice's flags and exits with 0.
  static Job Start(int* argc, char*** argv, const JobOptions& options = {});

  // The same, but returns errors instead of exiting; --help is none of its flags.
  static absl::StatusOr<Job> TryStart(int* argc, char*** argv, const JobOptions& options = {});

  // The same for programs that parse their flags with CLI11 (job_flags.h). Returns errors instead
  // of exiting.
  static absl::StatusOr<Job> Start(const JobFlags& flags);

  Job(Job&&) noexcept;
  ~Job();

  bool is_server() const { return server_ != nullptr; }

  // Serves until the job is over, then prints the closing table. Returns the process's exit code,
  // which server.h lists. Only if is_server().
  int Serve();

  // Whether this worker should print its progress: worker 0 of a launch, and every worker that was
  // started by hand.
  bool speaks() const { return index_.value_or(0) == 0; }

  // Opens a connection to the server. Waits for the server up to --connect-timeout; UNAVAILABLE
  // names the address and the reason. Only for workers.
  absl::StatusOr<std::unique_ptr<ServerConnection>> Connect() const;

  // The server's address and the token that it asks for, for calls that ServerConnection lacks.
  // Only for workers.
  const JobTicket& ticket() const { return ticket_; }

  // The name under which this worker joins.
  const std::string& name() const { return name_; }

  // --connect-timeout.
  absl::Duration connect_timeout() const { return absl::Seconds(connect_timeout_); }

  // The credentials of the command line, to listen or connect at `address` for calls between
  // workers (see serve_module.h); an empty source for plaintext. INVALID_ARGUMENT says why that is
  // not allowed there.
  absl::StatusOr<CredentialsSource> CredentialsAt(const Address& address) const;

  // The job of one more worker in this process, with a name of its own. It has no trace, and the
  // server chooses its index.
  Job WorkerNamed(const std::string& name) const;

  // The trace of this worker; null without --trace.
  Trace* trace() const { return trace_.get(); }

  // The encoding of this worker's gradients.
  const GradientEncoding& push_encoding() const { return push_encoding_; }

  // The encoding in which it pulls parameters.
  const EncodingChoice& pull_encoding() const { return pull_encoding_; }

  // The request with which this worker joins; the caller fills in layout and optimizer.
  JoinRequest Identity(SessionRole role) const;

 private:
  Job();

  absl::Status TakeCredentials(const JobFlags& flags);
  absl::Status TakeEncodings(const JobFlags& flags);

  JobTicket ticket_;
  CredentialsSource credentials_;   // empty: plaintext
  absl::optional<uint32_t> index_;  // among the workers of this launch
  std::string name_;
  ProcessNonce nonce_;
  double connect_timeout_ = 0;  // seconds
  int connections_ = 0;         // 0: automatic
  GradientEncoding push_encoding_;
  EncodingChoice pull_encoding_;
  std::function<absl::StatusOr<CredentialsSource>(const Address&)> credentials_at_;  // of the flags
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Server> server_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_JOB_H_
