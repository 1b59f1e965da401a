// Runs one server for an hour while its workers come and go, and says whether memory, file
// descriptors, threads and the p99 of a round stayed as they were. Started by tools/soak.
//
// Exit codes: 0 all of them are flat; 1 one is not; 2 bad command line; 3 something went wrong on
// the way, which is worse.

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "tests/soak/flatness.h"
#include "tests/soak/soak.h"
#include "tests/testing/process/record_sheet.h"

namespace sluice {
namespace {

constexpr int kNotFlat = 1;
constexpr int kBadUsage = 2;
constexpr int kWentWrong = 3;

struct Flags {
  SoakOptions soak;
  double minutes = 60;
  double interval = 60;
  double change_every = 5;
  std::string json;
};

int Fail(const absl::Status& why) {
  std::cerr << absl::StrCat("soak: ", why.message(), "\n");
  return absl::IsInvalidArgument(why) ? kBadUsage : kWentWrong;
}

RecordSheet& Note(const SoakReport& report, RecordSheet& sheet) {
  sheet.Count("steps", report.steps);
  sheet.Count("pushes", report.pushes);
  sheet.Count("joined", report.joined);
  sheet.Count("left", report.left);
  sheet.Count("killed", report.killed);
  sheet.Count("attacks", report.attacks);
  for (const Course& course : report.courses) sheet.Series(course.name, course.values);
  sheet.Series("load", report.load);
  return sheet;
}

int Run(const Flags& flags) {
  RecordSheet sheet("soak", flags.soak.seed);
  const auto report = RunSoak(flags.soak, std::cout);
  if (!report.ok()) return Fail(report.status());
  Note(*report, sheet);
  bool flat = true;
  for (const Course& course : report->courses) {
    const auto judged = Judge(course);
    if (!judged.ok()) return Fail(judged.status());
    std::cout << Describe(course, *judged) << "\n";
    sheet.Text(absl::StrCat(course.name, "_verdict"), Describe(course, *judged));
    flat = flat && judged->flat;
  }
  std::cout << absl::StrCat(report->steps, " steps, ", report->pushes, " pushes, ", report->joined,
                            " workers joined, ", report->left, " left, ", report->killed,
                            " were killed, ", report->attacks,
                            " attacks: ", flat ? "flat" : "NOT FLAT", "\n");
  sheet.Text("verdict", flat ? "flat" : "not flat");
  absl::Status written = sheet.Write();
  if (written.ok() && !flags.json.empty()) written = sheet.WriteTo(flags.json);
  if (!written.ok()) return Fail(written);
  return flat ? 0 : kNotFlat;
}

int Main(int argc, char** argv) {
  CLI::App app("Runs a server for long while its workers come and go.", "soak");
  Flags flags;
  app.add_option("--minutes", flags.minutes, "how long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--interval", flags.interval,
                 "seconds between two measurements, of which there must be 4 or more")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--change-every", flags.change_every,
                 "seconds after which a worker leaves or is killed, by turns, and another joins")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--workers", flags.soak.workers, "that come and go, beside one that stays")
      ->check(CLI::Range(1, 50))
      ->capture_default_str();
  app.add_option("--elements", flags.soak.elements, "of the model")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch-time", flags.soak.batch_time,
                 "seconds that a worker waits before each push")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", flags.soak.seed, "of who goes, and of the attacks")
      ->capture_default_str();
  app.add_flag("--hostile", flags.soak.hostile,
               "hostile peers attack the server all the time: with bombs, floods of calls and of "
               "resets, large and odd metadata, messages without end, silence and garbage");
  app.add_option("--json", flags.json, "file for the record sheet");
  const absl::optional<int> exit_code = ExitCodeOfUsage(app, argc, argv);
  if (exit_code.has_value()) return *exit_code;
  flags.soak.length = absl::Minutes(flags.minutes);
  flags.soak.interval = absl::Seconds(flags.interval);
  flags.soak.change_every = absl::Seconds(flags.change_every);
  if (flags.soak.measurements() < kFewestValues) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        flags.minutes, " minutes have fewer than ", kFewestValues, " intervals of ", flags.interval,
        " s, which is too few to judge by; give more --minutes or a shorter --interval")));
  }
  return Run(flags);
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::Main(argc, argv); }
