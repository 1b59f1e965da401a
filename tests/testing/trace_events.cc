#include "tests/testing/trace_events.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace sluice {
namespace {

using google::protobuf::Struct;

constexpr double kRounding = 1;  // a double does not hold microseconds since 1970 much better

double NumberAt(const Struct& event, const std::string& key) {
  const auto found = event.fields().find(key);
  return found == event.fields().end() ? -1 : found->second.number_value();
}

std::string TextAt(const Struct& event, const std::string& key) {
  const auto found = event.fields().find(key);
  return found == event.fields().end() ? "" : found->second.string_value();
}

Struct ArgumentsOf(const Struct& event) {
  const auto found = event.fields().find("args");
  return found == event.fields().end() ? Struct() : found->second.struct_value();
}

using Row = std::pair<double, double>;  // process and thread, as numbers

}  // namespace

absl::StatusOr<std::vector<TracedSpan>> ReadTrace(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  google::protobuf::ListValue list;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text.str(), &list);
  if (!parsed.ok()) return absl::DataLossError(std::string(parsed.message()));
  std::map<double, std::string> processes;
  std::map<Row, std::string> rows;
  for (const auto& value : list.values()) {
    const Struct& event = value.struct_value();
    const std::string name = TextAt(ArgumentsOf(event), "name");
    if (TextAt(event, "name") == "process_name") processes[NumberAt(event, "pid")] = name;
    if (TextAt(event, "name") == "thread_name") {
      rows[{NumberAt(event, "pid"), NumberAt(event, "tid")}] = name;
    }
  }
  std::vector<TracedSpan> spans;
  for (const auto& value : list.values()) {
    const Struct& event = value.struct_value();
    if (TextAt(event, "ph") == "M") continue;
    TracedSpan span;
    span.process = processes[NumberAt(event, "pid")];
    span.row = rows[{NumberAt(event, "pid"), NumberAt(event, "tid")}];
    span.name = TextAt(event, "name");
    span.begin = NumberAt(event, "ts");
    span.end = span.begin + NumberAt(event, "dur");
    span.step = static_cast<int>(NumberAt(ArgumentsOf(event), "step"));
    if (TextAt(event, "ph") != "X" || span.process.empty() || span.row.empty()) {
      return absl::DataLossError(absl::StrCat("no span with names: ", event.ShortDebugString()));
    }
    spans.push_back(std::move(span));
  }
  std::stable_sort(spans.begin(), spans.end(), [](const TracedSpan& a, const TracedSpan& b) {
    return std::make_pair(a.begin, -a.end) < std::make_pair(b.begin, -b.end);
  });
  return spans;
}

std::vector<TracedSpan> SpansOf(const std::vector<TracedSpan>& spans, const std::string& process,
                                const std::string& name) {
  std::vector<TracedSpan> found;
  for (const TracedSpan& span : spans) {
    if (span.process == process && span.name == name) found.push_back(span);
  }
  return found;
}

std::string BadlyNested(const std::vector<TracedSpan>& spans) {
  std::string bad;
  std::map<std::pair<std::string, std::string>, std::vector<TracedSpan>> open;
  for (const TracedSpan& span : spans) {
    std::vector<TracedSpan>& around = open[{span.process, span.row}];
    while (!around.empty() && around.back().end <= span.begin + kRounding) around.pop_back();
    if (!around.empty() && span.end > around.back().end + kRounding) {
      absl::StrAppend(&bad, span.process, " ", span.row, ": ", span.name, " reaches out of ",
                      around.back().name, "\n");
    }
    around.push_back(span);
  }
  return bad;
}

}  // namespace sluice
