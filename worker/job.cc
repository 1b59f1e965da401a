#include "worker/job.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "common/base/logging.h"
#include "common/base/malloc_tuning.h"
#include "common/base/random.h"
#include "common/launch/failure.h"
#include "common/launch/mpi_bootstrap.h"
#include "common/launch/outlive_server.h"
#include "common/net/address.h"
#include "common/net/network.h"
#include "common/security/secret_file.h"
#include "server/program/launch.h"
#include "server/program/server_flags.h"
#include "worker/connection/grpc/connection.h"
#include "worker/job_flags.h"

namespace sluice {
namespace {

constexpr int kBadUsage = 2;

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

// Sluice's flags in the command line of a program that may have others.
struct CommandLine {
  explicit CommandLine(const JobOptions& options) {
    app.set_help_flag();  // the program may have a --help of its own
    app.allow_extras();
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    SetPushes(options.pushes, flags);
    flags.server_flags->on_attachments = options.on_attachments;
    flags.server_flags->transforms = options.transforms;
    AddJobFlags(app, flags);
  }

  CLI::App app;
  JobFlags flags;
};

// Leaves the program's name and the arguments that CLI11 did not know.
void Consume(int* argc, char*** argv, const std::vector<std::string>& remaining) {
  int kept = 1;
  size_t next = 0;
  for (int i = 1; i < *argc; ++i) {
    if (next == remaining.size() || (*argv)[i] != remaining[next]) continue;
    (*argv)[kept++] = (*argv)[i];
    ++next;
  }
  *argc = kept;
  (*argv)[kept] = nullptr;
}

absl::Status NameFlag(absl::string_view flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

}  // namespace

Job::Job() = default;
Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

Job Job::Start(int* argc, char*** argv, const JobOptions& options) {
  absl::StatusOr<Job> job = TryStart(argc, argv, options);
  if (job.ok()) return *std::move(job);
  if (std::find(*argv, *argv + *argc, absl::string_view("--help")) != *argv + *argc) {
    std::cout << CommandLine(options).app.help((*argv)[0]);
    exit(0);
  }
  const int code = absl::IsInvalidArgument(job.status()) ? kBadUsage : 1;
  exit(ReportFailure((*argv)[0], job.status(), code));
}

absl::StatusOr<Job> Job::TryStart(int* argc, char*** argv, const JobOptions& options) {
  CommandLine line(options);
  try {
    ParseArguments(line.app, *argc, *argv);
  } catch (const CLI::ParseError& error) {
    return ShareFailure(absl::InvalidArgumentError(error.what()));
  }
  absl::StatusOr<Job> job = Start(line.flags);
  if (job.ok()) Consume(argc, argv, line.app.remaining());
  return job;
}

absl::StatusOr<Job> Job::Start(const JobFlags& flags) {
  InitLogging();
  KeepFreedMemory();
  Job job;
  job.connect_timeout_ = flags.connect_timeout;
  if (!absl::SimpleAtoi(flags.connections, &job.connections_)) job.connections_ = 0;
  job.nonce_ = RandomNonce();
  job.credentials_at_ = [security = flags.server_flags->security](const Address& address) {
    return sluice::CredentialsAt(security, address);
  };
  absl::Status sound = job.TakeEncodings(flags);
  const bool remote = !flags.server.empty();
  absl::StatusOr<JobTicket> ticket = absl::InvalidArgumentError(
      "no server: give --server=host:port, or launch with mpirun, where rank 0 is the server");
  if (remote) {
    ticket = TicketFrom(flags);
    sound.Update(ticket.status());
  }
  sound.Update(job.TakeCredentials(flags));
  if (LaunchedByMpi()) {
    auto launch = TakePartInLaunch(*flags.server_flags,
                                   remote ? ServerPlace::kElsewhere : ServerPlace::kRankZero,
                                   [&sound](const MpiWorld&) { return sound; });
    if (!launch.ok()) return launch.status();
    if (!remote && launch->server == nullptr) OutliveServer();
    job.server_ = std::move(launch->server);
    if (!remote) ticket = std::move(launch->ticket);
    const int first_worker = remote ? 0 : 1;
    if (launch->world.rank >= first_worker) job.index_ = launch->world.rank - first_worker;
  } else {
    sound.Update(CheckStartedByHand(*flags.server_flags));
    if (!sound.ok()) return sound;
  }
  if (!ticket.ok()) return ticket.status();
  job.ticket_ = *std::move(ticket);
  // A launch brings credentials, unless its ranks were told to use files or plaintext.
  const Credentials& launched = job.ticket_.credentials;
  if (!launched.key.empty()) job.credentials_ = SourceOf(launched);
  job.name_ = flags.name;
  if (job.name_.empty()) {
    job.name_ = job.index_.has_value() ? absl::StrCat("worker-", *job.index_)
                                       : absl::StrCat(HostName(), "-", getpid(), "-", RandomHex(2));
  }
  const std::string& trace = flags.server_flags->trace;
  if (!trace.empty() && !job.is_server()) {
    auto opened = Trace::Open(trace, Existing::kContinued, job.name_, RealClock());
    if (!opened.ok()) return opened.status();
    job.trace_ = *std::move(opened);
    job.push_encoding_.trace = job.trace_.get();
  }
  return job;
}

// Those that the flags name.
absl::Status Job::TakeCredentials(const JobFlags& flags) {
  const SecurityFlags& security = flags.server_flags->security;
  absl::StatusOr<CredentialsSource> credentials = CredentialsSource();
  if (!flags.server.empty()) {
    const auto address = ParseAddress(flags.server);
    if (!address.ok()) return address.status();
    credentials = sluice::CredentialsAt(security, *address);
  } else {
    credentials = CredentialsFrom(security);
  }
  if (!credentials.ok()) return credentials.status();
  credentials_ = *std::move(credentials);
  return absl::OkStatus();
}

absl::Status Job::TakeEncodings(const JobFlags& flags) {
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

int Job::Serve() {
  const int code = server_->Serve();
  std::cout << server_->ClosingTable() << std::flush;
  return code;
}

absl::StatusOr<std::unique_ptr<ServerConnection>> Job::Connect() const {
  GrpcConnectionOptions options;
  options.address = ticket_.address;
  options.token = ticket_.token;
  options.credentials = credentials_;
  options.connect_timeout = absl::Seconds(connect_timeout_);
  options.trace = trace_.get();
  options.connections = connections_;
  options.pull_encoding = pull_encoding_.encoding;
  options.transforms = push_encoding_.transforms;
  return ConnectOverGrpc(options);
}

absl::StatusOr<CredentialsSource> Job::CredentialsAt(const Address& address) const {
  return credentials_at_(address);
}

Job Job::WorkerNamed(const std::string& name) const {
  Job job;
  job.ticket_ = ticket_;
  job.credentials_ = credentials_;
  job.name_ = name;
  job.nonce_ = RandomNonce();
  job.connect_timeout_ = connect_timeout_;
  job.connections_ = connections_;
  job.push_encoding_ = push_encoding_;
  job.push_encoding_.trace = nullptr;
  job.pull_encoding_ = pull_encoding_;
  job.credentials_at_ = credentials_at_;
  return job;
}

JoinRequest Job::Identity(SessionRole role) const {
  JoinRequest request;
  request.job_id = ticket_.job_id;
  request.role = role;
  request.worker = role == SessionRole::kWorker ? name_ : absl::StrCat(name_, "-observer");
  request.process_nonce = nonce_;
  request.host = HostName();
  request.pid = static_cast<uint32_t>(getpid());
  // Shown to people only, so a long name may be cut.
  request.push_encoding = Shown(EncodingChoiceName(push_encoding_.choice)).substr(0, 64);
  request.pull_encoding = Shown(EncodingChoiceName(pull_encoding_)).substr(0, 64);
  if (role == SessionRole::kWorker) request.index = index_;
  return request;
}

}  // namespace sluice
