#include "tools/bench/part.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

template <typename Value>
void AddHidden(CLI::App& app, const char* name, Value& value) {
  app.add_option(name, value)->group("");
}

template <typename Enum>
void AddHidden(CLI::App& app, const char* name, Enum& value, std::map<std::string, Enum> names) {
  app.add_option(name, value)->transform(CLI::CheckedTransformer(std::move(names)))->group("");
}

}  // namespace

void AddPartFlags(CLI::App& app, Part& part) {
  AddHidden(app, "--part", part.kind,
            {{"server", PartKind::kServer}, {"worker", PartKind::kWorker}});
  AddHidden(app, "--part-side", part.cell.side,
            {{SideName(Side::kSluice), Side::kSluice}, {SideName(Side::kPlain), Side::kPlain}});
  AddHidden(app, "--part-socket", part.cell.socket,
            {{SocketName(SocketKind::kUnix), SocketKind::kUnix},
             {SocketName(SocketKind::kTcp), SocketKind::kTcp}});
  AddHidden(app, "--part-elements", part.cell.elements);
  AddHidden(app, "--part-workers", part.cell.workers);
  AddHidden(app, "--part-index", part.index);
  AddHidden(app, "--part-address", part.address);
}

std::vector<std::string> PartFlags(const Part& part) {
  std::vector<std::string> flags = {
      absl::StrCat("--part=", part.kind == PartKind::kServer ? "server" : "worker"),
      absl::StrCat("--part-side=", SideName(part.cell.side)),
      absl::StrCat("--part-socket=", SocketName(part.cell.socket)),
      absl::StrCat("--part-elements=", part.cell.elements),
      absl::StrCat("--part-workers=", part.cell.workers),
      absl::StrCat("--part-index=", part.index),
  };
  if (!part.address.empty()) flags.push_back(absl::StrCat("--part-address=", part.address));
  return flags;
}

std::string Describe(const Part& part) {
  const std::string side = absl::StrCat("the ", SideName(part.cell.side));
  if (part.kind == PartKind::kServer) return absl::StrCat(side, " server");
  return absl::StrCat(side, " worker ", part.index + 1, " of ", part.cell.workers);
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
