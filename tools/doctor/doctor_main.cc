// sluice_doctor: checks whether this machine can run a job, and says what to do where it cannot.
//
//   sluice_doctor --model-size=100 --workers=16 --listen=0.0.0.0:7070
//
// Exit codes: 0 nothing is wrong, though there may be warnings; 1 something is wrong; 2 bad command
// line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/command_line.h"
#include "common/wire/versions.h"
#include "tools/doctor/certificate_checks.h"
#include "tools/doctor/file_checks.h"
#include "tools/doctor/machine_checks.h"
#include "tools/doctor/server_checks.h"

namespace sluice {
namespace {

struct DoctorFlags {
  PlannedJob job;
  NamedThings things;
  std::string server;
  bool insecure_on_network = false;
};

void AddDoctorFlags(CLI::App& app, DoctorFlags& flags) {
  PlannedJob& job = flags.job;
  NamedThings& things = flags.things;
  app.add_option("--model-size", job.model_mb, "MB of parameters that the model has")
      ->check(NumberFrom(0, 1e9));
  app.add_option("--workers", job.workers, "workers of the job")->check(CLI::Range(1, 1'000'000));
  app.add_option("--listen", things.listen, "address at which a server shall listen");
  app.add_option("--server", flags.server,
                 "address of a running server, which is asked as a worker would ask it");
  app.add_option("--tls-cert", things.tls.certificate, "PEM file with a certificate");
  app.add_option("--tls-key", things.tls.key, "PEM file with its key");
  app.add_option("--tls-ca", things.tls.authority, "PEM file with the authorities");
  app.add_option("--token-file", things.token_file, "file whose first line is the secret");
  app.add_flag("--insecure-on-network", flags.insecure_on_network,
               "send the token in plaintext to a server on a network where everybody is trusted");
  app.add_option("--checkpoint-dir", things.checkpoint_dir, "directory for checkpoints");
}

void Append(Findings more, Findings& findings) {
  std::move(more.begin(), more.end(), std::back_inserter(findings));
}

Findings Examine(const DoctorFlags& flags) {
  const NamedThings& things = flags.things;
  Findings findings = CheckMachine(flags.job);
  Append(CheckNamed(things), findings);
  Append(CheckCertificate(things.tls.certificate, absl::Now()), findings);
  if (!flags.server.empty()) {
    Append(CheckServer(
               {flags.server, {things.tls, false, flags.insecure_on_network}, things.token_file}),
           findings);
  }
  return findings;
}

int Main(int argc, char** argv) {
  CLI::App app("Checks whether this machine can run a job.", "sluice_doctor");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.footer("Exit codes: 0 nothing is wrong; 1 something is wrong; 2 bad command line.");
  DoctorFlags flags;
  AddDoctorFlags(app, flags);
  AddVersionFlag(app, WireVersions());
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  signal(SIGPIPE, SIG_IGN);  // a server may close the connection at any time
  const Findings findings = Examine(flags);
  for (const Finding& finding : findings) std::cout << LineOf(finding);
  std::cout << std::flush;
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& one) { return one.verdict == Verdict::kWrong; })
             ? 1
             : 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
