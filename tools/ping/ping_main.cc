// sluice_ping: measures the path between this machine and a server, and recommends flags for it.
//
//   sluice_ping host:port
//
// kExitCodes lists the exit codes.

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/launch/failure.h"
#include "common/net/address.h"
#include "common/security/cipher_rate.h"
#include "common/wire/versions.h"
#include "tools/ping/measure.h"
#include "tools/ping/recommendation.h"
#include "tools/ping/report.h"
#include "worker/connection/grpc/probe.h"
#include "worker/job.h"
#include "worker/job_flags.h"
#include "worker/worker_context.h"

namespace sluice {
namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 done; 1 it failed, for example because of the token or because the server is "
    "older than this program; 2 bad command line; 3 no server answered for --connect-timeout.";

constexpr absl::Duration kCipherTime = absl::Milliseconds(100);

struct PingFlags {
  double seconds = 5;
  double model_size = 102;  // MB
  bool json = false;
  JobFlags job;

  uint64_t elements() const { return static_cast<uint64_t>(model_size * 1e6 / sizeof(float)); }
};

void AddPingFlags(CLI::App& app, PingFlags& flags) {
  flags.job.connect_timeout = 10;
  app.add_option("address", flags.job.server, "the server: host:port or unix:/path");
  app.add_option("--seconds", flags.seconds, "time to measure the path, in all")
      ->check(NumberFrom(0.1, 10))
      ->capture_default_str();
  app.add_option("--model-size", flags.model_size, "MB (10^6 bytes) of parameters of a round")
      ->check(NumberFrom(0.001, 1e6))
      ->capture_default_str();
  app.add_flag("--json", flags.json, "print one JSON object instead of tables");
  AddConnectionFlags(app, flags.job);
}

absl::StatusOr<PingReport> Measure(const PingFlags& flags) {
  const auto address = ParseAddress(flags.job.server);
  if (!address.ok()) return address.status();
  const auto job = Job::Start(flags.job);
  if (!job.ok()) return job.status();
  PingReport report;
  report.address = flags.job.server;
  report.tls = job->context().credentials() != nullptr;
  const auto probe =
      GrpcProbe::Connect({job->context().ticket().address, job->context().ticket().token,
                          job->context().credentials(), job->context().connect_timeout()},
                         RealClock());
  if (!probe.ok()) return probe.status();
  auto path = MeasurePath(**probe, address->is_unix(), absl::Seconds(flags.seconds));
  if (!path.ok()) return path.status();
  report.path = *std::move(path);
  if (report.tls) {
    const auto cipher = MeasureCipher(kCipherTime, [] { return RealClock().Now(); });
    if (!cipher.ok()) return cipher.status();
    report.cipher_rate = *cipher;
  }
  report.elements = flags.elements();
  report.encodings = PriceEncodings(report.elements, RealClock());
  report.recommendation = Recommend(
      {report.path.round_trip.median, report.path.rates, report.path.server.shares_memory},
      report.encodings, report.elements);
  return report;
}

int Main(int argc, char** argv) {
  CLI::App app("Measures the path between this machine and a server, and recommends flags for it.",
               "sluice_ping");
  app.footer(kExitCodes);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  PingFlags flags;
  AddPingFlags(app, flags);
  AddVersionFlag(app, WireVersions());
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  absl::StatusOr<PingReport> report = absl::InvalidArgumentError(absl::StrCat(
      "found no address of a server, expected one, such as ", app.get_name(), " host:7070"));
  if (!flags.job.server.empty()) report = Measure(flags);
  if (!report.ok()) {
    std::cerr << absl::StrCat(app.get_name(), ": ",
                              NameVariables(std::string(report.status().message())), "\n");
    return ExitCodeOf(report.status());
  }
  std::cout << (flags.json ? absl::StrCat(ReportJson(*report), "\n") : ReportText(*report));
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
