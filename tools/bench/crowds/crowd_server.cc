#include "tools/bench/crowds/crowd_server.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tests/testing/process/launch.h"

namespace sluice::bench {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(50);  // between two looks at the server
constexpr uint32_t kDefaultMaxWorkers = 1024;

Words CommandLineOf(const CrowdCase& of, const CrowdSetup& setup, const std::string& address) {
  if (of.mode == kBareMode) {
    return {setup.root + "/tools/bench/bare/bare_server_main", "--listen=" + address,
            absl::StrCat("--workers=", of.workers)};
  }
  return {setup.root + "/server/sluice_server",
          "--listen=" + address,
          "--mode=" + of.mode,
          absl::StrCat("--workers=", of.workers),
          absl::StrCat("--max-workers=", std::max(of.workers, kDefaultMaxWorkers)),
          absl::StrCat("--lease=", setup.lease),
          absl::StrCat("--shared-memory=", setup.shared_memory ? "on" : "off")};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CrowdServer>> CrowdServer::Start(const CrowdCase& of,
                                                                const CrowdSetup& setup) {
  std::unique_ptr<PrivateDirectory> directory;
  std::string address = absl::StrCat("127.0.0.1:", FreePort());
  if (!setup.tcp) {
    auto created = PrivateDirectory::Create();
    if (!created.ok()) return created.status();
    directory = *std::move(created);
    address = absl::StrCat("unix:", directory->path(), "/server.sock");
  }
  auto process = Process::Start(CommandLineOf(of, setup, address));
  if (!process.ok()) return process.status();
  std::unique_ptr<CrowdServer> server(
      new CrowdServer(std::move(directory), std::move(address), *std::move(process)));
  const absl::Status answers = server->AwaitAnswer();
  if (!answers.ok()) return answers;
  return server;
}

absl::Status CrowdServer::AwaitAnswer() {
  for (;;) {
    const absl::Status looked = StepOf(address_).status();
    // A bare server answers that it has no Inspector.
    if (looked.ok() || absl::IsUnimplemented(looked)) return absl::OkStatus();
    const absl::Status works = Pass(kPause);
    if (!works.ok()) return works;
  }
}

absl::Status CrowdServer::Pass(absl::Duration time) {
  const auto ended = process_->Wait(time);
  if (absl::IsDeadlineExceeded(ended.status())) return absl::OkStatus();
  if (!ended.ok()) return ended.status();
  return absl::AbortedError(
      absl::StrCat("the server ended with ", *ended, " before its time:\n", process_->output()));
}

absl::StatusOr<absl::Duration> CrowdServer::AwaitEvictions(uint32_t workers, absl::Duration limit) {
  const absl::Time start = RealClock().Now();
  for (;;) {
    const auto evicted = CountWorkers(address_, "EVICTED");
    if (!evicted.ok()) return evicted.status();
    const absl::Duration took = RealClock().Now() - start;
    if (*evicted == workers) return took;
    if (took > limit) {
      return absl::DeadlineExceededError(absl::StrCat("after ", absl::FormatDuration(limit), " ",
                                                      *evicted, " workers were evicted, expected ",
                                                      workers));
    }
    const absl::Status works = Pass(kPause);
    if (!works.ok()) return works;
  }
}

absl::StatusOr<std::map<std::string, std::string>> CrowdServer::AwaitEnd() {
  const auto code = process_->Wait();
  if (!code.ok()) return code.status();
  if (*code == 0) return ClosingRows(process_->output());
  return absl::AbortedError(
      absl::StrCat("the server ended with ", *code, ", expected 0:\n", process_->output()));
}

}  // namespace sluice::bench
