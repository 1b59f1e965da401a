// A process's part in a job: server or worker, and how a worker reaches the server.
//
// The one place where a program decides which half it is. Launched by mpirun, rank 0 is the server
// and the others are workers; with --server=host:port every process is a worker, with MPI or
// without.
//
//   auto job = sluice::Job::Start(&argc, &argv);
//   if (job.is_server()) return job.Serve();

#ifndef SLUICE_WORKER_JOB_H_
#define SLUICE_WORKER_JOB_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/encoding/encoding_plan.h"
#include "common/launch/job_ticket.h"
#include "common/protocol/attachment.h"
#include "common/protocol/learning_rate_schedule.h"
#include "common/protocol/protocol_types.h"
#include "common/security/credentials_source.h"
#include "common/trace/trace.h"
#include "worker/compression/gradient_encoder.h"
#include "worker/connection/server_connection.h"

namespace CLI {
class App;
}

namespace sluice {

class Server;
struct ServerFlags;

// The flags of a worker, and, for rank 0, of a server.
struct JobFlags {
  JobFlags();
  ~JobFlags();

  std::string server;                  // address; empty: launched by mpirun
  std::string name;                    // of this worker; empty: made up
  double connect_timeout = 60;         // seconds
  std::string push_encoding = "none";  // as ParseEncodingChoice() reads it
  std::string pull_encoding = "none";  // the same, without exceptions for tensors
  bool error_feedback = true;
  std::string connections = "auto";           // or a number
  std::unique_ptr<ServerFlags> server_flags;  // --token-file and --trace among them
};

// Adds them to `app`, in groups of their own. `flags` outlives the parsing.
void AddJobFlags(CLI::App& app, JobFlags& flags);

// Of those, the ones by which a program that only looks on reaches a server that runs: its address
// and what it asks of callers.
void AddConnectionFlags(CLI::App& app, JobFlags& flags);

// The schedule of the learning rate that a server with those flags would follow.
absl::StatusOr<LearningRateSchedule> ScheduleFrom(const JobFlags& flags);

bool WantsTrace(const JobFlags& flags);

class Job {
 public:
  // Takes Sluice's flags out of the command line and takes part in the launch. If that cannot be,
  // says why on stderr and exits: 2 for a bad command line, 1 otherwise; or, given --help, lists
  // Sluice's flags and exits 0. Call it first in main, once. If this process turns out to be the
  // server, `on_attachments` reads what workers attach to their pushes.
  static Job Start(int* argc, char*** argv, AttachmentHook on_attachments = nullptr);

  // As above, for programs that parse their flags with CLI11 themselves.
  static absl::StatusOr<Job> Start(const JobFlags& flags);

  Job(Job&&) noexcept;
  ~Job();

  bool is_server() const { return server_ != nullptr; }

  // Serves until the job is over, then prints its closing table. Returns the process's exit code.
  // Only if is_server().
  int Serve();

  // Whether this worker writes to the terminal: all of those started by hand do, and one of those
  // launched together.
  bool speaks() const { return index_.value_or(0) == 0; }

  // A new connection to the server. Only for workers; UNAVAILABLE names the address that was tried
  // and why.
  absl::StatusOr<std::unique_ptr<ServerConnection>> Connect() const;

  // Where the server is, and what it asks of whoever speaks to it; for calls that ServerConnection
  // lacks. Only for workers.
  const JobTicket& ticket() const { return ticket_; }

  // Of where this worker's time goes, if that was asked for; else null.
  Trace* trace() const { return trace_.get(); }

  // How this worker's gradients are encoded.
  const GradientEncoding& push_encoding() const { return push_encoding_; }

  // How it wants parameters.
  const EncodingChoice& pull_encoding() const { return pull_encoding_; }

  // Who this worker is, for Join; layout and optimizer are still to be filled in.
  JoinRequest Identity(SessionRole role) const;

 private:
  Job();

  absl::Status TakeCredentials(const JobFlags& flags);
  absl::Status TakeEncodings(const JobFlags& flags);

  JobTicket ticket_;
  CredentialsSource credentials_;   // empty: plaintext
  absl::optional<uint32_t> index_;  // among the workers that were launched together
  std::string name_;
  ProcessNonce nonce_;
  double connect_timeout_ = 0;
  int connections_ = 0;  // 0: automatic
  GradientEncoding push_encoding_;
  EncodingChoice pull_encoding_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<Server> server_;
};

}  // namespace sluice

#endif  // SLUICE_WORKER_JOB_H_
