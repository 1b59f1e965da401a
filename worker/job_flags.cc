#include "worker/job_flags.h"

#include <locale.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <locale>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/command_line.h"
#include "common/base/error.h"
#include "server/program/server_flags.h"

namespace sluice {
namespace {

constexpr int kMostConnections = 16;

// While it exists, new streams write numbers as C does: so CLI11 makes the texts of defaults, which
// --print-config writes as JSON. The program may have chosen another locale for them. To choose one
// also sets that of C.
class StreamsOfC {
 public:
  StreamsOfC()
      : of_c_(setlocale(LC_ALL, nullptr)), streams_(std::locale::global(std::locale::classic())) {}
  ~StreamsOfC() {
    std::locale::global(streams_);
    setlocale(LC_ALL, of_c_.c_str());
  }

  StreamsOfC(const StreamsOfC&) = delete;
  StreamsOfC& operator=(const StreamsOfC&) = delete;

 private:
  const std::string of_c_;
  const std::locale streams_;
};

void AddConnectTimeout(CLI::App& group, JobFlags& flags) {
  group
      .add_option("--connect-timeout", flags.connect_timeout,
                  "seconds to wait for a server that cannot be reached, at the start or later")
      ->check(SecondsFrom(0))
      ->capture_default_str();
}

// Flags of a server that its workers read, too.
constexpr absl::string_view kOfWorkersToo[] = {
    "--token-file",          "--tls-cert", "--tls-key",     "--tls-ca", "--insecure",
    "--insecure-on-network", "--trace",    "--max-restarts"};

// Whether a program has this flag only because it may serve.
bool IsOnlyOfServer(const std::string& flag, const CLI::App& server, const CLI::App& program) {
  const auto own =
      program.get_options([&flag](const CLI::Option* o) { return o->check_name(flag); });
  return own.empty() && server.get_option_no_throw(flag) != nullptr &&
         std::count(std::begin(kOfWorkersToo), std::end(kOfWorkersToo), flag) == 0;
}

}  // namespace

JobFlags::JobFlags() : server_flags(std::make_unique<ServerFlags>()) {}
JobFlags::~JobFlags() = default;

void AddJobFlags(CLI::App& app, JobFlags& flags) {
  const StreamsOfC streams;
  CLI::App& group = *app.add_option_group("Job", "How this worker reaches its server");
  group.add_option("--server", flags.server,
                   "address of a running server: host:port or unix:/path (not needed under mpirun, "
                   "where rank 0 is the server)");
  group.add_option("--name", flags.name, "this worker's name (default: made of host and process)");
  AddConnectTimeout(group, flags);
  group
      .add_option(
          "--push-encoding", flags.push_encoding,
          "the encoding of gradients: float32 (none), float16, bfloat16, "
          "int8[:stochastic], sign[:momentum], top-k[:SHARE][:momentum][:warmup=STEPS], "
          "random-k[:SHARE] or low-rank[:RANK], then [/planes|/nonzero][/zstd[:LEVEL]|/pdict]; or "
          "auto[:ENCODING,…] for the fastest of these (default: of the "
          "lossless ones); then [,TENSOR=ENCODING…] for single tensors, where PREFIX* means all "
          "tensors whose names begin with PREFIX")
      ->capture_default_str();
  group
      .add_option("--pull-encoding", flags.pull_encoding,
                  "the encoding of parameters: as --push-encoding, but one for all tensors, and "
                  "neither top-k nor random-k")
      ->capture_default_str();
  group.add_flag("--error-feedback,!--no-error-feedback", flags.error_feedback,
                 "store what an encoding loses of a gradient, and add it to the next gradient");
  group.add_flag("--options-must-agree", flags.options_must_agree,
                 "end this worker if its program changes the optimizer's options in another way "
                 "than another worker's, instead of a warning; in sync and backup only");
  group
      .add_option("--row-cache", flags.row_cache,
                  "steps for which a row of a table that was pulled is used again, instead of "
                  "pulling it; in async, ssp and bounded only (0: none)")
      ->capture_default_str();
  group
      .add_option("--row-cache-memory", flags.row_cache_memory,
                  "MB that such rows may take, of all tables together")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  group
      .add_option(
          "--connections", flags.connections,
          "TCP connections that share a large model's tensors, 1 to 16, between hosts only; "
          "auto: 1, or up to 8 if measurements show that more are faster")
      ->check(CLI::IsMember({"auto"}) | CLI::Range(1, kMostConnections))
      ->capture_default_str();
  AddServerFlags(app, *flags.server_flags);
}

void AddConnectionFlags(CLI::App& app, JobFlags& flags) {
  CLI::App& group = *app.add_option_group("Server", "How this process reaches a server");
  group.add_option("--server", flags.server,
                   "address of a running server: host:port or unix:/path");
  group.add_option("--name", flags.name, "this process's name (default: made of host and process)");
  AddConnectTimeout(group, flags);
  group.add_option("--token-file", flags.server_flags->token_file,
                   "file whose first line is the secret that the server asks for");
  AddSecurityFlags(group, flags.server_flags->security);
}

absl::Status CheckFlagsOfServer(const CLI::App& app, const JobFlags& flags,
                                const std::vector<std::string>& words) {
  if (flags.server.empty()) return absl::OkStatus();
  CLI::App server;
  server.set_help_flag();
  ServerFlags unused;
  AddServerFlags(server, unused);
  std::set<std::string> found;
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string flag = word.substr(0, word.find('='));
    if (absl::StartsWith(flag, "--") && IsOnlyOfServer(flag, server, app)) found.insert(flag);
  }
  if (found.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("flags of the server, which runs elsewhere (--server=", Shown(flags.server),
                   "), were given here: ", absl::StrJoin(found, ", "),
                   "; leave them out, and give them to sluice_server"));
}

absl::StatusOr<LearningRateSchedule> ScheduleFrom(const JobFlags& flags) {
  ShardOptions options;
  const absl::Status applied = ApplyTrainingFlags(flags.server_flags->training, 0, &options);
  if (!applied.ok()) return applied;
  return options.schedule;
}

bool WantsTrace(const JobFlags& flags) { return !flags.server_flags->trace.empty(); }

bool NeedsPushes(const JobFlags& flags) {
  const TrainingFlags& training = flags.server_flags->training;
  return flags.server.empty() && training.lr_schedule == "cosine" &&
         training.schedule.total_steps == 0;
}

void SetPushes(uint64_t pushes, JobFlags& flags) { flags.server_flags->training.pushes = pushes; }

void SetSoonerEnd(uint64_t pushes_of_each, uint64_t last_step, JobFlags& flags) {
  flags.server_flags->training.pushes_of_each = pushes_of_each;
  flags.server_flags->training.last_step = last_step;
}

}  // namespace sluice
