#include "tools/bench/harness/participant.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace sluice::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::string UsageLine() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  return absl::StrFormat("%.6f %d", cpu_seconds, uint64_t{1024} * usage.ru_maxrss);
}

absl::Status TimeRound(const std::function<absl::Status()>& round, std::string* line) {
  const auto start = std::chrono::steady_clock::now();
  const absl::Status done = round();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  *line = absl::StrFormat("%.9f", took.count());
  return done;
}

}  // namespace

void AddParticipantFlags(CLI::App& app, Participant& participant) {
  const std::map<std::string, ParticipantKind> kinds = {{"server", ParticipantKind::kServer},
                                                        {"worker", ParticipantKind::kWorker}};
  app.add_option("--participant", participant.kind, "server or worker")
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--elements", participant.elements, "float32 numbers in the vector")->required();
  app.add_option("--workers", participant.workers, "in the cell")->required();
  app.add_option("--index", participant.index, "of a worker");
  app.add_option("--address", participant.address, "of a worker's server");
  app.add_option("--layers", participant.layers, "elements of each array")->delimiter(',');
}

std::vector<std::string> ParticipantFlags(const Participant& participant) {
  std::vector<std::string> flags = {
      absl::StrCat("--participant=",
                   participant.kind == ParticipantKind::kServer ? "server" : "worker"),
      absl::StrCat("--elements=", participant.elements),
      absl::StrCat("--workers=", participant.workers),
      absl::StrCat("--index=", participant.index),
  };
  if (!participant.address.empty())
    flags.push_back(absl::StrCat("--address=", participant.address));
  if (!participant.layers.empty()) {
    flags.push_back(absl::StrCat("--layers=", absl::StrJoin(participant.layers, ",")));
  }
  return flags;
}

absl::Status AnswerParent(absl::string_view detail, const std::function<absl::Status()>& round) {
  std::cout << "ready " << detail << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string answer;
    if (line == "usage") {
      answer = UsageLine();
    } else if (line == "round" && round) {
      const absl::Status done = TimeRound(round, &answer);
      if (!done.ok()) return done;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("was told \"", line, "\", expected \"round\" or \"usage\""));
    }
    std::cout << answer << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
