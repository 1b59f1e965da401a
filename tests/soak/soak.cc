#include "tests/soak/soak.h"

#include <signal.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/net/private_directory.h"
#include "tests/soak/process_group.h"
#include "tests/soak/process_size.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"

namespace sluice {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
// Without a report of the worker that stays: what hangs must not go unnoticed.
constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr size_t kLastWords = 4096;

constexpr char kServer[] = "the server";
constexpr char kSteady[] = "the worker that stays";
constexpr char kHostile[] = "hostile peers";

// What the machine's noise is granted; server/ and worker/ are granted no growth.
constexpr Allowance kMemoryNoise = {1.05, 2};
constexpr Allowance kDescriptorNoise = {1, 8};
constexpr Allowance kThreadNoise = {1, 4};
constexpr Allowance kTimeNoise = {1.5, 5};

class Soak {
 public:
  Soak(const SoakOptions& options, std::ostream& out)
      : options_(options),
        out_(out),
        process_group_([this](const std::string& name) { return StartWorker(name, {}); },
                       options.seed),
        courses_({{"rss_mb", kMemoryNoise, {}},
                  {"file_descriptors", kDescriptorNoise, {}},
                  {"threads", kThreadNoise, {}},
                  {"p99_of_a_round_ms", kTimeNoise, {}}}) {}

  absl::Status Begin() {
    auto directory = PrivateDirectory::Create();
    if (!directory.ok()) return directory.status();
    directory_ = *std::move(directory);
    const absl::Status started = StartServer();
    if (!started.ok()) return started;
    const double report = absl::ToDoubleSeconds(options_.interval);
    auto steady = StartWorker("steady", {absl::StrCat("--report-every=", report)});
    if (!steady.ok()) return steady.status();
    steady_ = *std::move(steady);
    const absl::Status joined = process_group_.Start(options_.workers);
    return joined.ok() && options_.hostile ? StartHostilePeers() : joined;
  }

  // Until there are as many measurements as intervals.
  absl::Status Run() {
    absl::Time next_change = absl::Now() + options_.change_every;
    absl::Time last_report = absl::Now();
    while (courses_[0].values.size() < options_.measurements()) {
      absl::SleepFor(kTick);
      absl::Status sound = Look();
      if (sound.ok() && absl::Now() >= next_change) {
        sound = process_group_.Change();
        next_change = absl::Now() + options_.change_every;
      }
      if (!sound.ok()) return sound;
      const std::vector<std::string> reports = LinesWith(steady_->output(), "rounds ");
      if (reports.size() > courses_[0].values.size()) {
        sound = Measure(reports.back());
        last_report = absl::Now();
      } else if (absl::Now() - last_report > options_.interval + kPatience) {
        sound = absl::DeadlineExceededError("the worker that stays has not told of its rounds");
      }
      if (!sound.ok()) return sound;
    }
    return absl::OkStatus();
  }

  // All leave; the server then ends by itself.
  absl::StatusOr<SoakReport> End() {
    SoakReport report;
    absl::Status ended;
    if (hostile_ != nullptr) ended = Stop(kHostile, *hostile_);
    if (ended.ok()) ended = process_group_.Leave();
    if (ended.ok()) ended = Stop(kSteady, *steady_);
    if (ended.ok()) ended = AwaitEnd(kServer, *server_);
    if (!ended.ok()) return ended;
    if (hostile_ != nullptr) {
      const auto attacks = hostile_->WaitForOutput("attacks: ([0-9]+)");
      if (!attacks.ok() || !absl::SimpleAtoi(*attacks, &report.attacks)) return attacks.status();
    }
    report.courses = courses_;
    report.load = load_;
    report.joined = process_group_.joined() + 1;
    report.left = process_group_.left() + 1;
    report.killed = process_group_.killed();
    const absl::Status exact = CheckEnd(&report);
    if (!exact.ok()) return exact;
    return report;
  }

  // Whatever went wrong, the server may say why.
  absl::Status WithServersWords(const absl::Status& error) {
    server_->Wait(absl::ZeroDuration()).status().IgnoreError();
    const std::string& words = server_->output();
    const size_t last = words.size() > kLastWords ? words.size() - kLastWords : 0;
    return absl::Status(error.code(), absl::StrCat(error.message(), "\nthe server wrote last:\n",
                                                   words.substr(last)));
  }

 private:
  absl::Status StartServer() {
    Words words = {RunfilePath("server/sluice_server"),
                   "--listen=127.0.0.1:0",
                   "--lease=2",
                   "--max-workers=64",
                   "--reduction=sum",
                   absl::StrCat("--workers=", options_.workers + 1),
                   absl::StrCat("--checkpoint-dir=", directory_->path()),
                   "--checkpoint-every=500",
                   "--keep-checkpoints=2",
                   "--durability=journal"};
    auto server = Process::Start(words);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    auto address = server_->WaitForOutput("listening on ([^ ]+)");
    if (!address.ok()) return address.status();
    address_ = *std::move(address);
    return absl::OkStatus();
  }

  absl::Status StartHostilePeers() {
    auto started = Process::Start({RunfilePath("tests/testing/http2/hostile_peers.py"), address_,
                                   absl::StrCat(options_.seed)},
                                  {{"PYTHONDONTWRITEBYTECODE", "1"}});
    if (!started.ok()) return started.status();
    hostile_ = *std::move(started);
    return absl::OkStatus();
  }

  static absl::Status Stop(absl::string_view who, Process& process) {
    process.Signal(SIGTERM);
    return AwaitEnd(who, process);
  }

  absl::StatusOr<std::unique_ptr<Process>> StartWorker(const std::string& name,
                                                       const Words& more) const {
    Words words = {RunfilePath("tests/testing/process/pushing_worker_program"),
                   "--gradient=1",
                   "--steps=1000000000",
                   "--leave-on-sigterm",
                   absl::StrCat("--name=", name),
                   absl::StrCat("--server=", address_),
                   absl::StrCat("--elements=", options_.elements),
                   absl::StrCat("--batch-time=", options_.batch_time)};
    words.insert(words.end(), more.begin(), more.end());
    return Process::Start(words);
  }

  absl::Status Look() {
    absl::Status works = CheckWorks(kServer, *server_);
    if (works.ok()) works = CheckWorks(kSteady, *steady_);
    if (works.ok() && hostile_ != nullptr) works = CheckWorks(kHostile, *hostile_);
    if (!works.ok()) return works;
    return process_group_.Look();
  }

  // `rounds` is what the worker that stays says: "rounds 900: p50 0.01 s, p99 0.02 s".
  absl::Status Measure(const std::string& rounds) {
    const auto size = SizeOf(server_->pid());
    if (!size.ok()) return size.status();
    const std::vector<std::string> words = absl::StrSplit(rounds, ' ');
    double p99 = 0;
    if (words.size() < 7 || !absl::SimpleAtod(words[6], &p99)) {
      return absl::InternalError(absl::StrCat("\"", rounds, "\" tells no p99"));
    }
    const double values[] = {size->rss_mb, size->file_descriptors, size->threads, p99 * 1e3};
    std::string line = absl::StrCat(courses_[0].values.size() + 1, ":");
    for (size_t i = 0; i < courses_.size(); ++i) {
      courses_[i].values.push_back(values[i]);
      absl::StrAppendFormat(&line, " %s %.4g", courses_[i].name, values[i]);
    }
    double load = 0;
    getloadavg(&load, 1);
    load_.push_back(load);
    absl::StrAppendFormat(&line, " load %.4g", load);
    out_ << line << ", " << absl::StripSuffix(words[1], ":") << " rounds, "
         << process_group_.joined() << " joined, " << process_group_.killed() << " killed\n"
         << std::flush;
    return absl::OkStatus();
  }

  // Each push that counts subtracts 1, and the worker that stays leaves last.
  absl::Status CheckEnd(SoakReport* report) const {
    auto rows = ClosingRows(server_->output());
    const std::string expected = absl::StrCat("parameters at step ", rows["steps"], ": -",
                                              rows["accepted"], " to -", rows["accepted"]);
    const std::vector<std::string> found = LinesWith(steady_->output(), "parameters at");
    const bool read = absl::SimpleAtoi(rows["steps"], &report->steps) &&
                      absl::SimpleAtoi(rows["accepted"], &report->pushes);
    if (read && found.size() == 1 && found[0] == expected) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("found \"", found.empty() ? "" : found[0], "\", expected \"", expected, "\""));
  }

  const SoakOptions options_;
  std::ostream& out_;
  std::unique_ptr<PrivateDirectory> directory_;
  std::unique_ptr<Process> server_;
  std::string address_;
  std::unique_ptr<Process> steady_;
  std::unique_ptr<Process> hostile_;  // or null
  ProcessGroup process_group_;
  std::vector<Course> courses_;
  std::vector<double> load_;
};

}  // namespace

absl::StatusOr<SoakReport> RunSoak(const SoakOptions& options, std::ostream& out) {
  Soak soak(options, out);
  const absl::Status begun = soak.Begin();
  if (!begun.ok()) return begun;
  const absl::Status ran = soak.Run();
  if (!ran.ok()) return soak.WithServersWords(ran);
  auto report = soak.End();
  if (!report.ok()) return soak.WithServersWords(report.status());
  return report;
}

}  // namespace sluice
