#include "tests/testing/process/record_sheet.h"

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/testing/process/process.h"
#include "tests/testing/quantile.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What the environment asks of the run, then the words of the command line, without folders.
std::string Command() {
  std::vector<std::string> words;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view variable = *entry;
    const bool ours = absl::StartsWith(variable, "SLUICE_");
    if (ours && !absl::StartsWith(variable, "SLUICE_RECORD=")) words.emplace_back(variable);
  }
  std::ifstream file("/proc/self/cmdline");
  const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> argv = absl::StrSplit(line, '\0', absl::SkipEmpty());
  if (!argv.empty()) argv[0] = std::filesystem::path(argv[0]).filename().string();
  words.insert(words.end(), argv.begin(), argv.end());
  return absl::StrJoin(words, " ");
}

// Of the tree that `bazel run` was called in.
std::string Commit() {
  const std::string told = Variable("SLUICE_COMMIT");
  const std::string tree = Variable("BUILD_WORKSPACE_DIRECTORY");
  if (!told.empty() || tree.empty()) return told.empty() ? "unknown" : told;
  const auto git = Process::Start({"git", "-C", tree, "rev-parse", "--short", "HEAD"});
  if (!git.ok()) return "unknown";
  const auto status = (*git)->Wait();
  if (!status.ok() || *status != 0) return "unknown";
  return std::string(absl::StripAsciiWhitespace((*git)->output()));
}

Json Machine() {
  utsname system = {};
  uname(&system);
  struct sysinfo memory = {};
  sysinfo(&memory);
  return {{"cores", std::thread::hardware_concurrency()},
          {"memory_bytes", static_cast<uint64_t>(memory.totalram) * memory.mem_unit},
          {"kernel", system.release}};
}

}  // namespace

struct RecordSheet::Figures {
  const absl::Time began = absl::Now();
  Json json = Json::object();
};

RecordSheet::RecordSheet(std::string run, uint64_t seed)
    : run_(std::move(run)), seed_(seed), figures_(std::make_unique<Figures>()) {}

RecordSheet::~RecordSheet() = default;

void RecordSheet::Count(const std::string& name, uint64_t count) { figures_->json[name] = count; }

void RecordSheet::Figure(const std::string& name, double value) { figures_->json[name] = value; }

void RecordSheet::Text(const std::string& name, const std::string& text) {
  figures_->json[name] = text;
}

void RecordSheet::Series(const std::string& name, const std::vector<double>& values) {
  figures_->json[name] = values;
}

void RecordSheet::Counts(const std::string& name, const std::map<std::string, uint64_t>& counts) {
  figures_->json[name] = counts;
}

void RecordSheet::Times(const std::string& name, const std::vector<absl::Duration>& times) {
  Json summary = {{"count", times.size()}};
  if (!times.empty()) {
    summary["p50"] = absl::ToDoubleSeconds(Quantile(times, 0.5));
    summary["p99"] = absl::ToDoubleSeconds(Quantile(times, 0.99));
    summary["max"] = absl::ToDoubleSeconds(Quantile(times, 1));
  }
  figures_->json[name] = summary;
}

std::string RecordSheet::ToJson() const {
  const Json sheet = {
      {"run", run_},
      {"date", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", figures_->began, absl::UTCTimeZone())},
      {"took_s", absl::ToDoubleSeconds(absl::Now() - figures_->began)},
      {"commit", Commit()},
      {"machine", Machine()},
      {"command", Command()},
      {"seed", seed_},
      {"figures", figures_->json}};
  return absl::StrCat(sheet.dump(2), "\n");
}

absl::Status RecordSheet::Write() const {
  std::string directory = Variable("SLUICE_RECORD");
  if (directory.empty()) directory = Variable("TEST_UNDECLARED_OUTPUTS_DIR");
  if (directory.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  return WriteTo(absl::StrCat(directory, "/", run_, ".json"));
}

absl::Status RecordSheet::WriteTo(const std::string& path) const {
  std::ofstream file(path);
  file << ToJson() << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path, "; name a file in a directory that is there"));
}

}  // namespace sluice
