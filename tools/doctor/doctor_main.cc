// sluice_doctor: checks whether this machine can run a job, and says what to do where it cannot.
//
//   sluice_doctor --model-size=100 --workers=16 --listen=0.0.0.0:7070
//
// Exit codes: 0 nothing is wrong, though there may be warnings; 1 something is wrong; 2 bad command
// line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "common/base/command_line.h"
#include "common/wire/versions.h"
#include "tools/doctor/file_checks.h"
#include "tools/doctor/machine_checks.h"

namespace sluice {
namespace {

void AddDoctorFlags(CLI::App& app, PlannedJob& job, NamedThings& things) {
  app.add_option("--model-size", job.model_mb, "MB of parameters that the model has")
      ->check(NumberFrom(0, 1e9));
  app.add_option("--workers", job.workers, "workers of the job")->check(CLI::Range(1, 1'000'000));
  app.add_option("--listen", things.listen, "address at which a server shall listen");
  app.add_option("--server", things.server, "address of a running server");
  app.add_option("--tls-cert", things.tls.certificate, "PEM file with a certificate");
  app.add_option("--tls-key", things.tls.key, "PEM file with its key");
  app.add_option("--tls-ca", things.tls.authority, "PEM file with the authorities");
  app.add_option("--token-file", things.token_file, "file whose first line is the secret");
  app.add_option("--checkpoint-dir", things.checkpoint_dir, "directory for checkpoints");
}

int Main(int argc, char** argv) {
  CLI::App app("Checks whether this machine can run a job.", "sluice_doctor");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.footer("Exit codes: 0 nothing is wrong; 1 something is wrong; 2 bad command line.");
  PlannedJob job;
  NamedThings things;
  AddDoctorFlags(app, job, things);
  AddVersionFlag(app, WireVersions());
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  Findings findings = CheckMachine(job);
  const Findings named = CheckNamed(things);
  findings.insert(findings.end(), named.begin(), named.end());
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
