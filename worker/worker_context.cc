#include "worker/worker_context.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/random.h"
#include "common/base/version.h"
#include "common/net/network.h"
#include "common/protocol/model_name.h"
#include "common/security/secret_file.h"
#include "server/program/server_flags.h"
#include "worker/connection/grpc/all_gather.h"
#include "worker/connection/grpc/connection.h"
#include "worker/connection/grpc/job_hold.h"
#include "worker/job_flags.h"

namespace sluice {
namespace {

// The ticket of a server that the command line names. It may run any job.
absl::StatusOr<JobTicket> TicketFrom(const JobFlags& flags) {
  JobTicket ticket;
  ticket.address = flags.server;
  if (flags.server_flags->token_file.empty()) return ticket;
  auto token = ReadSecretFile(flags.server_flags->token_file);
  if (!token.ok()) return token.status();
  ticket.token = *std::move(token);
  return ticket;
}

absl::Status NameFlag(absl::string_view flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

absl::Status AlreadyTrains(const std::string& model) {
  if (!model.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process trains a model with the name \"", model,
                     "\" already; give each model a name of its own, or leave with the other "
                     "optimizer before"));
  }
  return absl::FailedPreconditionError(
      "this process trains a model without a name already, and a job has one of them; give the "
      "second model a name (name= in Python, Job::Model() in C++), or one optimizer all "
      "parameters, in groups if they differ, or leave with the other optimizer before");
}

}  // namespace

absl::StatusOr<WorkerContext> WorkerContext::From(const JobFlags& flags) {
  WorkerContext context;
  context.name_ = flags.name;
  context.connect_timeout_ = absl::Seconds(flags.connect_timeout);
  if (!absl::SimpleAtoi(flags.connections, &context.connections_)) context.connections_ = 0;
  context.nonce_ = RandomNonce();
  if (flags.options_must_agree) {
    context.if_options_differ_ = ParameterClient::IfOptionsDiffer::kFails;
  }
  context.row_cache_.max_age = flags.row_cache;
  context.row_cache_.max_bytes = static_cast<uint64_t>(flags.row_cache_memory * 1e6);
  context.credentials_at_ = [security = flags.server_flags->security](const Address& address) {
    return sluice::CredentialsAt(security, address);
  };
  absl::Status sound = context.TakeEncodings(flags);
  sound.Update(context.TakeServer(flags));
  if (!sound.ok()) return sound;
  return context;
}

// Takes the ticket of --server, and the credentials that the flags name.
absl::Status WorkerContext::TakeServer(const JobFlags& flags) {
  absl::StatusOr<CredentialsSource> credentials = CredentialsSource();
  if (flags.server.empty()) {
    credentials = CredentialsFrom(flags.server_flags->security);
  } else {
    auto ticket = TicketFrom(flags);
    if (!ticket.ok()) return ticket.status();
    ticket_ = *std::move(ticket);
    const auto address = ParseAddress(flags.server);
    if (!address.ok()) return address.status();
    credentials = CredentialsAt(*address);
  }
  if (!credentials.ok()) return credentials.status();
  credentials_ = *std::move(credentials);
  return absl::OkStatus();
}

absl::Status WorkerContext::TakeEncodings(const JobFlags& flags) {
  auto push = ParseEncodingChoice(flags.push_encoding);
  if (!push.ok()) return NameFlag("--push-encoding", push.status());
  const TransformRegistry& transforms = flags.server_flags->transforms;
  absl::Status known = CheckKnown(*push, transforms);
  if (!known.ok()) return NameFlag("--push-encoding", known);
  auto pull = ParseEncodingChoice(flags.pull_encoding);
  if (!pull.ok()) return NameFlag("--pull-encoding", pull.status());
  known = CheckKnown(*pull, transforms);
  if (!known.ok()) return NameFlag("--pull-encoding", known);
  if (!pull->overrides.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pull-encoding: all parameters are pulled in one encoding; found one for ",
                     pull->overrides[0].pattern, " alone, leave it out"));
  }
  if (pull->sparse()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pull-encoding: with ", flags.pull_encoding,
                     " parameters that are not sent would be 0; expected another"));
  }
  if (pull->momentum()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pull-encoding: parameters have no momentum; in ", flags.pull_encoding,
                     " leave :momentum out"));
  }
  if (push->momentum() && !flags.error_feedback) {
    return absl::InvalidArgumentError(
        "--no-error-feedback: an encoding with :momentum needs error feedback; leave one out");
  }
  push_encoding_.choice = *std::move(push);
  push_encoding_.error_feedback = flags.error_feedback;
  push_encoding_.transforms = transforms;
  pull_encoding_ = *std::move(pull);
  return absl::OkStatus();
}

void WorkerContext::TakeTicket(JobTicket ticket, std::function<absl::Status()> check) {
  ticket_ = std::move(ticket);
  check_ = std::move(check);
  launched_ = true;
  // A launch brings credentials, unless its ranks were told to use files or plaintext.
  if (!ticket_.credentials.key.empty()) credentials_ = SourceOf(ticket_.credentials);
}

void WorkerContext::TakePlace(absl::optional<uint32_t> index, absl::optional<uint32_t> workers) {
  index_ = index;
  workers_ = workers;
  if (!name_.empty()) return;
  name_ = index_.has_value() ? absl::StrCat("worker-", *index_)
                             : absl::StrCat(HostName(), "-", getpid(), "-", RandomHex(2));
}

absl::Status WorkerContext::OpenTrace(const std::string& file) {
  auto opened = Trace::Open(file, Existing::kContinued, name_, RealClock());
  if (!opened.ok()) return opened.status();
  trace_ = *std::move(opened);
  push_encoding_.trace = trace_.get();
  return absl::OkStatus();
}

WorkerContext WorkerContext::WorkerNamed(const std::string& name) const {
  WorkerContext context = *this;
  context.index_ = absl::nullopt;
  context.workers_ = absl::nullopt;
  context.name_ = name;
  context.nonce_ = RandomNonce();
  context.trace_ = nullptr;
  context.push_encoding_.trace = nullptr;
  context.part_ = std::make_shared<Part>();
  return context;
}

absl::StatusOr<WorkerContext> WorkerContext::ForModel(const std::string& model) const {
  const absl::Status named = CheckModelName(model);
  if (!named.ok()) return named;
  WorkerContext context = *this;
  context.model_ = model;
  context.trace_ = nullptr;
  context.push_encoding_.trace = nullptr;
  return context;
}

absl::Status WorkerContext::HoldJob() const {
  {
    absl::MutexLock lock(&part_->mu);
    if (part_->hold != nullptr) return absl::OkStatus();
  }
  auto hold = JobHold::Open(ConnectionOptions());
  if (!hold.ok()) return hold.status();
  absl::MutexLock lock(&part_->mu);
  if (part_->hold == nullptr) part_->hold = *std::move(hold);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const void>> WorkerContext::TakePart() const {
  const absl::Status holds = model_.empty() ? absl::OkStatus() : HoldJob();
  if (!holds.ok()) return holds;
  absl::MutexLock lock(&part_->mu);
  std::weak_ptr<const void>& holder = part_->holders[model_];
  if (!holder.expired()) return AlreadyTrains(model_);
  const std::shared_ptr<const void> held = std::make_shared<int>();
  holder = held;
  return held;
}

absl::StatusOr<std::vector<std::string>> WorkerContext::AllGather(absl::string_view data,
                                                                  absl::Duration wait) const {
  if (!index_.has_value() || !workers_.has_value()) {
    return absl::FailedPreconditionError(
        "this process has no rank: it was started by hand, or serves; launch the workers with "
        "mpirun or srun");
  }
  Gathering gathering;
  {
    absl::MutexLock lock(&part_->mu);
    gathering.number = part_->gathered + 1;
  }
  gathering.rank = *index_;
  gathering.size = *workers_;
  gathering.nonce = nonce_;
  gathering.data = data;
  auto given = AllGatherOverGrpc(ConnectionOptions(), gathering, wait);
  absl::MutexLock lock(&part_->mu);
  if (given.ok()) part_->gathered = gathering.number;
  return given;
}

absl::StatusOr<std::unique_ptr<ServerConnection>> WorkerContext::Connect() const {
  return ConnectOverGrpc(ConnectionOptions());
}

GrpcConnectionOptions WorkerContext::ConnectionOptions() const {
  GrpcConnectionOptions options;
  options.address = ticket_.address;
  options.token = ticket_.token;
  options.model = model_;
  options.credentials = credentials_;
  options.connect_timeout = connect_timeout_;
  options.launched = launched_;
  options.check = check_;
  options.trace = trace_.get();
  options.connections = connections_;
  options.pull_encoding = pull_encoding_.encoding;
  options.transforms = push_encoding_.transforms;
  return options;
}

absl::StatusOr<CredentialsSource> WorkerContext::CredentialsAt(const Address& address) const {
  return credentials_at_(address);
}

JoinRequest WorkerContext::Identity(SessionRole role) const {
  JoinRequest request;
  request.job_id = ticket_.job_id;
  request.role = role;
  request.worker = role == SessionRole::kWorker ? name_ : absl::StrCat(name_, "-observer");
  request.process_nonce = nonce_;
  request.host = HostName();
  request.pid = static_cast<uint32_t>(getpid());
  request.version = kVersion;
  // Shown to people only, so a long name may be cut.
  request.push_encoding = Shown(EncodingChoiceName(push_encoding_.choice)).substr(0, 64);
  request.pull_encoding = Shown(EncodingChoiceName(pull_encoding_)).substr(0, 64);
  if (role == SessionRole::kWorker) request.index = index_;
  return request;
}

}  // namespace sluice
