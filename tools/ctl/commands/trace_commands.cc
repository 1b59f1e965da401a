// trace: collects from a running server what its trace records, and writes it to a file.

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/progress_line.h"
#include "common/storage/file_system.h"
#include "common/wire/settings.h"
#include "tools/ctl/commands/command.h"
#include "tools/ctl/render/text.h"

namespace sluice {
namespace {

struct TraceFlags {
  double seconds = 5;
  std::string out;
};

// All that has come.
struct CollectedTrace {
  std::string events;
  uint64_t spans = 0;
  uint64_t missed = 0;
  bool full = false;

  void Add(const v1::CollectTraceResponse& part) {
    if (!part.events().empty())
      absl::StrAppend(&events, events.empty() ? "" : ",\n", part.events());
    spans += part.spans();
    missed += part.missed();
    full = full || part.full();
  }
};

absl::Status WriteWhole(const std::string& path, const std::string& text) {
  const auto file = RealFileSystem().Create(path);
  const absl::Status written = file.ok() ? (*file)->Append(text) : file.status();
  // Not UNAVAILABLE: no connection was lost.
  return written.ok() ? written : absl::DataLossError(written.message());
}

std::string CollectedText(const CollectedTrace& trace, const std::string& path) {
  std::string text = absl::StrCat(CountText(trace.spans, "span"), " in ", Printable(path),
                                  "; chrome://tracing and ui.perfetto.dev show it\n");
  if (trace.missed > 0) {
    absl::StrAppend(&text, CountText(trace.missed, "span"), " came too fast to be sent\n");
  }
  if (trace.full) {
    absl::StrAppend(&text, "the collection has ended early, because it is as large as may be\n");
  }
  return text;
}

// Says meanwhile how much of the time has passed.
absl::StatusOr<CollectedTrace> Collect(OperatorClient& client, double seconds,
                                       const ProgressOutput& output) {
  constexpr double kPartsOfASecond = 1000;
  const absl::Time began = RealClock().Now();
  const auto total = static_cast<uint64_t>(seconds * kPartsOfASecond) + 1;
  ProgressLine progress("collecting", total, output, RealClock());
  v1::CollectTraceRequest request;
  *request.mutable_time() = ToProto(absl::Seconds(seconds));
  CollectedTrace trace;
  const absl::Status read = client.CollectTrace(request, [&](const v1::CollectTraceResponse& part) {
    trace.Add(part);
    const absl::Duration passed = RealClock().Now() - began;
    const auto parts = static_cast<uint64_t>(kPartsOfASecond * absl::ToDoubleSeconds(passed));
    progress.Reach(std::min(parts, total));
    return true;
  });
  if (!read.ok()) return read;
  return trace;
}

std::string CollectedJson(const CollectedTrace& trace, const std::string& path) {
  using Json = nlohmann::ordered_json;
  const Json told = {
      {"path", path}, {"spans", trace.spans}, {"missed", trace.missed}, {"full", trace.full}};
  return absl::StrCat(told.dump(-1, ' ', true, Json::error_handler_t::replace), "\n");
}

absl::Status CollectTrace(const TraceFlags& own, const CommonFlags& flags) {
  const auto client = ConnectOperator(flags.connection);
  if (!client.ok()) return client.status();
  const auto trace =
      Collect(**client, own.seconds, flags.quiet ? ProgressOutput() : ProgressOutput::OnStderr());
  if (!trace.ok()) return trace.status();
  const absl::Status written = WriteWhole(own.out, absl::StrCat("[\n", trace->events, "\n]\n"));
  if (!written.ok()) return written;
  if (flags.json) {
    std::cout << CollectedJson(*trace, own.out);
  } else if (!flags.quiet) {
    std::cout << CollectedText(*trace, own.out);
  }
  return absl::OkStatus();
}

}  // namespace

void AddTraceCommands(CLI::App& app, std::vector<Command>& commands) {
  auto own = std::make_shared<TraceFlags>();
  CLI::App& trace = *app.add_subcommand(
      "trace", "writes a timeline of the running server, for chrome://tracing and Perfetto");
  trace.add_option("out", own->out, "the file to write, for example trace.json")->required();
  trace.add_option("--seconds", own->seconds, "how long to collect")
      ->check(CLI::Range(0.1, 60.0))
      ->capture_default_str();
  commands.push_back(
      {&trace, [own](const CommonFlags& flags) { return CollectTrace(*own, flags); }});
}

}  // namespace sluice
