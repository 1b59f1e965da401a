// store_main: measures how many rows a server's tables read and update in a second of one core,
// beside the least that memory allows on the same machine.
//
// tools/bench/tables starts it. Exit codes: 0 done; 1, with --check, a goal was missed; 2 bad
// command line.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/command_line.h"
#include "common/base/malloc_tuning.h"
#include "common/base/mutex_tuning.h"
#include "tools/bench/harness/cell.h"
#include "tools/bench/lookups/bare_rows.h"
#include "tools/bench/lookups/stored_rows.h"
#include "tools/bench/lookups/zipf_ids.h"

namespace sluice::bench {
namespace {

constexpr double kLeastOfBound = 0.4;  // goals
constexpr double kMostMemory = 1.3;
constexpr size_t kFill = 65536;  // rows of a push while the tables are filled

struct Flags {
  std::vector<uint32_t> widths = {16, 64, 128};
  uint64_t rows = 1'000'000;
  std::vector<size_t> batches = {4096, 65536};
  double exponent = 1.1;
  uint32_t rounds = 9;
  bool check = false;
};

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double CpuSecondsOf(const Work& work) {
  const double begun = CpuSeconds();
  work();
  return CpuSeconds() - begun;
}

// Rows in a second of a core.
struct Round {
  double read, update, bare_read, bare_update;

  // Of a read and an update of each row.
  static double Both(double read, double update) { return 2 / (1 / read + 1 / update); }
  double ratio() const { return Both(read, update) / Both(bare_read, bare_update); }
};

double MedianOf(const std::vector<Round>& rounds, double (*figure)(const Round&)) {
  std::vector<double> all;
  for (const Round& round : rounds) all.push_back(figure(round));
  return SpreadOf(all).median;
}

class Race {
 public:
  Race(uint32_t width, const Flags& flags)
      : width_(width),
        flags_(flags),
        ours_(width, AdagradOptions()),
        bare_(flags.rows, width, 1),
        gradients_(std::make_shared<std::vector<float>>(kFill * width, 0.5F)) {
    std::vector<uint64_t> ids;
    for (uint64_t id = 0; id < flags.rows; ++id) {
      ids.push_back(id);
      if (ids.size() < kFill && id + 1 < flags.rows) continue;
      ours_.Step(*ours_.Arrived(ids, gradients_));
      ids.clear();
    }
  }

  // Each round has other ids.
  std::vector<Round> Run(size_t batch) {
    std::vector<Round> rounds;
    for (uint32_t i = 0; i < flags_.rounds; ++i) {
      rounds.push_back(
          RunOnce(Different(ZipfIds(flags_.rows, flags_.exponent, i + 1).Draw(batch))));
    }
    return rounds;
  }

  // The tables' memory over that of the rows' numbers.
  double memory() const {
    const TableStatus status = ours_.status();
    return static_cast<double>(status.bytes) / static_cast<double>(status.rows * width_ * 2 * 4);
  }

 private:
  Round RunOnce(const std::vector<uint64_t>& ids) {
    const auto count = static_cast<double>(ids.size());
    std::vector<float> to(ids.size() * width_);
    const auto push = ours_.Arrived(ids, gradients_);
    Round round = {};
    round.bare_read = count / CpuSecondsOf([&] { bare_.Read(ids, absl::MakeSpan(to)); });
    round.read = count / CpuSecondsOf([&] { ours_.Read(ids, absl::MakeSpan(to)); });
    round.bare_update = count / CpuSecondsOf([&] { bare_.Add(ids, *gradients_); });
    round.update = count / CpuSecondsOf([&] { ours_.Step(*push); });
    return round;
  }

  const uint32_t width_;
  const Flags& flags_;
  StoredRows ours_;
  BareRows bare_;
  const std::shared_ptr<std::vector<float>> gradients_;
};

// Returns whether the goals are met.
bool Print(const Race& race, uint32_t width, size_t batch, const std::vector<Round>& rounds) {
  constexpr double kMillion = 1e6;
  const double ratio = MedianOf(rounds, [](const Round& round) { return round.ratio(); });
  absl::PrintF("| %5d | %6d | %6.2f | %6.2f | %6.2f | %6.2f | %5.2f | %5.2f |\n", width, batch,
               MedianOf(rounds, [](const Round& round) { return round.read; }) / kMillion,
               MedianOf(rounds, [](const Round& round) { return round.bare_read; }) / kMillion,
               MedianOf(rounds, [](const Round& round) { return round.update; }) / kMillion,
               MedianOf(rounds, [](const Round& round) { return round.bare_update; }) / kMillion,
               ratio, race.memory());
  std::fflush(stdout);
  return ratio >= kLeastOfBound && race.memory() <= kMostMemory;
}

int Run(const Flags& flags) {
  absl::PrintF("Millions of rows in a second of one core; %d rows with Adagrad, Zipf %g.\n",
               flags.rows, flags.exponent);
  absl::PrintF(
      "| width |  batch |   read |   bare | update |   bare | ratio | memory |\n"
      "|---|---|---|---|---|---|---|---|\n");
  bool met = true;
  for (const uint32_t width : flags.widths) {
    Race race(width, flags);
    for (const size_t batch : flags.batches) met &= Print(race, width, batch, race.Run(batch));
  }
  return met || !flags.check ? 0 : 1;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Measures the rows that a server's tables read and update in a second of one core.",
               "tools/bench/tables store");
  app.add_option("--widths", flags.widths, "numbers of a row")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rows", flags.rows, "rows of the table")->capture_default_str();
  app.add_option("--batches", flags.batches, "ids of a batch, with repeated ones")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--exponent", flags.exponent, "of Zipf's law")->capture_default_str();
  app.add_option("--rounds", flags.rounds, "measured batches; medians are shown")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--check", flags.check, "exit with 1 if a goal is missed");
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  KeepFreedMemory();
  TrustLockOrder();  // as a server does
  return Run(flags);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
