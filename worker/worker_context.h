// How a process of a job reaches the server, and who it is there. Job makes it from the flags and
// the launch; Sluice's own clients use it.

#ifndef SLUICE_WORKER_WORKER_CONTEXT_H_
#define SLUICE_WORKER_WORKER_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/encoding/encoding_plan.h"
#include "common/launch/job_ticket.h"
#include "common/net/address.h"
#include "common/protocol/protocol_types.h"
#include "common/security/credentials_source.h"
#include "common/trace/trace.h"
#include "worker/client/parameter_client.h"
#include "worker/client/row_cache_options.h"
#include "worker/compression/gradient_encoder.h"
#include "worker/connection/server_connection.h"

namespace sluice {

class JobHold;
struct GrpcConnectionOptions;
struct JobFlags;

// A value that one thread sets up and any number may then read. The server's process has one, too,
// and uses nothing of it.
class WorkerContext {
 public:
  // What the flags say. INVALID_ARGUMENT names the flag that is wrong; other errors are of files
  // that the flags name. Without --server there is no ticket yet.
  static absl::StatusOr<WorkerContext> From(const JobFlags& flags);

  // Takes the ticket of a launch, in place of one that --server would give. `check` is
  // GrpcConnectionOptions::check.
  void TakeTicket(JobTicket ticket, std::function<absl::Status()> check);

  // Gives this worker its place among those of the launch, absent if it was started by hand, and
  // their number. A worker without --name then gets its name.
  void TakePlace(absl::optional<uint32_t> index, absl::optional<uint32_t> workers);

  // Begins the trace of this worker in that file.
  absl::Status OpenTrace(const std::string& file);

  // The context of one more worker in this process. It has no trace and no place.
  WorkerContext WorkerNamed(const std::string& name) const;

  // The same worker's context for the model of that name, in a job that has several. It has no
  // trace: spans do not say whose steps they are. BAD_ARGUMENT if no model can have that name.
  absl::StatusOr<WorkerContext> ForModel(const std::string& model) const;

  // Opens a connection to the server. Waits for the server up to --connect-timeout; UNAVAILABLE
  // names the address and the reason.
  absl::StatusOr<std::unique_ptr<ServerConnection>> Connect() const;

  // How Connect() reaches the server, for calls that ServerConnection lacks.
  GrpcConnectionOptions ConnectionOptions() const;

  // What trains the model as this worker holds the result until it has left or failed.
  // FAILED_PRECONDITION if something in this process holds one of the same model: the server would
  // take two for one that joins again and again. Any thread may call it.
  //
  // The first call for a named model waits for the server as Connect() does. From then on the job
  // is held as long as a context of this worker exists, so that it does not end between two models.
  // BAD_ARGUMENT if the job cannot have several models; UNIMPLEMENTED if the server is too old; or
  // the errors of Connect().
  absl::StatusOr<std::shared_ptr<const void>> TakePart() const;

  // From now on the job is held, as TakePart() says of named models.
  absl::Status HoldJob() const;

  // Gives `data` to all workers of the launch, and returns what each has given, in the order of
  // their ranks. All make the same calls in the same order. DEADLINE_EXCEEDED after `wait` names
  // those that are missing; the next call is for the same exchange then, as after any error.
  // FAILED_PRECONDITION if this worker was started by hand. AllGatherOverGrpc() has other errors.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view data,
                                                     absl::Duration wait) const;

  // The request with which this worker joins; the caller fills in layout and optimizer.
  JoinRequest Identity(SessionRole role) const;

  // The server's address and the token that it asks for, for calls that ServerConnection lacks.
  const JobTicket& ticket() const { return ticket_; }

  // The place among the workers of the launch.
  absl::optional<uint32_t> index() const { return index_; }

  // How many workers the launch has.
  absl::optional<uint32_t> workers() const { return workers_; }

  // The name under which this worker joins.
  const std::string& name() const { return name_; }

  // --connect-timeout.
  absl::Duration connect_timeout() const { return connect_timeout_; }

  // The credentials of the command line, to listen or connect at `address` for calls between
  // workers (see serve_module.h); an empty source for plaintext. INVALID_ARGUMENT says why that is
  // not allowed there.
  absl::StatusOr<CredentialsSource> CredentialsAt(const Address& address) const;

  // The trace of this worker; null without --trace.
  Trace* trace() const { return trace_.get(); }

  // The encoding of this worker's gradients.
  const GradientEncoding& push_encoding() const { return push_encoding_; }

  // The encoding in which it pulls parameters.
  const EncodingChoice& pull_encoding() const { return pull_encoding_; }

  // What it does if another worker has other options of the optimizer.
  ParameterClient::IfOptionsDiffer if_options_differ() const { return if_options_differ_; }

  // How long it uses rows that it has pulled.
  const RowCacheOptions& row_cache() const { return row_cache_; }

 private:
  // Copies of a context are of one worker.
  struct Part {
    absl::Mutex mu;
    // By the model's name, empty if it has none.
    std::map<std::string, std::weak_ptr<const void>> holders ABSL_GUARDED_BY(mu);
    std::shared_ptr<const JobHold> hold ABSL_GUARDED_BY(mu);  // null without named models
    uint64_t gathered ABSL_GUARDED_BY(mu) = 0;                // exchanges that are over
  };

  absl::Status TakeServer(const JobFlags& flags);
  absl::Status TakeEncodings(const JobFlags& flags);

  JobTicket ticket_;
  bool launched_ = false;  // the ticket is that of a launch
  std::function<absl::Status()> check_;
  CredentialsSource credentials_;   // empty: plaintext
  absl::optional<uint32_t> index_;  // among the workers of this launch
  absl::optional<uint32_t> workers_;
  std::string name_;
  std::string model_;  // empty: the one without a name
  ProcessNonce nonce_;
  absl::Duration connect_timeout_;
  int connections_ = 0;  // 0: automatic
  GradientEncoding push_encoding_;
  EncodingChoice pull_encoding_;
  ParameterClient::IfOptionsDiffer if_options_differ_ = ParameterClient::IfOptionsDiffer::kWarns;
  RowCacheOptions row_cache_;
  std::function<absl::StatusOr<CredentialsSource>(const Address&)> credentials_at_;  // of the flags
  std::shared_ptr<Trace> trace_;
  std::shared_ptr<Part> part_ = std::make_shared<Part>();
};

}  // namespace sluice

#endif  // SLUICE_WORKER_WORKER_CONTEXT_H_
