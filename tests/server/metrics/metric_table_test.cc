// The table of server/metrics/README.md has the metrics that are served, and alerts and dashboard
// use no others.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/shard_families.h"
#include "server/metrics/span_histograms.h"
#include "tests/server/metrics/full_moment.h"
#include "tests/testing/json.h"
#include "tests/testing/process/process.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

std::string Read(const std::string& file) {
  std::ifstream in(RunfilePath("server/metrics/" + file));
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << file;
  return text.str();
}

// The cells of each row that begins with a metric's name.
std::vector<std::vector<std::string>> Rows() {
  std::vector<std::vector<std::string>> rows;
  const std::string text = Read("README.md");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "| `sluice_") && !absl::StartsWith(line, "| `process_")) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    for (std::string& cell : cells) {
      cell.erase(std::remove(cell.begin(), cell.end(), '`'), cell.end());
      cell = std::string(absl::StripAsciiWhitespace(cell));
    }
    EXPECT_THAT(cells, SizeIs(7)) << line;
    rows.push_back({cells[1], cells[2], cells[3], cells[4], cells[5]});
  }
  return rows;
}

std::vector<prometheus::MetricFamily> Served() {
  std::vector<prometheus::MetricFamily> served = ShardFamilies(FullMoment());
  for (auto& more : {ProcessFamilies(), SpanHistograms().Collect()}) {
    served.insert(served.end(), more.begin(), more.end());
  }
  return served;
}

std::string TypeOf(const prometheus::MetricFamily& family) {
  if (family.type == prometheus::MetricType::Counter) return "counter";
  return family.type == prometheus::MetricType::Gauge ? "gauge" : "histogram";
}

std::string LabelsOf(const prometheus::MetricFamily& family) {
  std::set<std::string> labels;
  for (const prometheus::ClientMetric& metric : family.metric) {
    for (const auto& label : metric.label) labels.insert(label.name);
  }
  return absl::StrJoin(labels, ", ");
}

std::string Line(const std::string& name, const std::string& type, const std::string& labels,
                 const std::string& help) {
  return absl::StrCat(name, " | ", type, " | ", labels, " | ", help);
}

TEST(MetricTableTest, HasExactlyTheMetricsThatAreServed) {
  std::vector<std::string> served;
  for (const prometheus::MetricFamily& family : Served()) {
    EXPECT_THAT(family.metric, ::testing::Not(IsEmpty())) << family.name;
    served.push_back(Line(family.name, TypeOf(family), LabelsOf(family), family.help));
  }
  std::vector<std::string> written;
  for (const auto& row : Rows()) written.push_back(Line(row[0], row[1], row[2], row[4]));
  EXPECT_THAT(written, UnorderedElementsAreArray(served));
}

TEST(MetricTableTest, NamesEndWithTheirUnits) {
  for (const auto& row : Rows()) {
    const std::string base(absl::StripSuffix(row[0], "_total"));
    for (const char* unit : {"seconds", "bytes"}) {
      EXPECT_EQ(row[3] == unit, absl::EndsWith(base, absl::StrCat("_", unit))) << row[0];
    }
    EXPECT_EQ(row[1] == "counter", base != row[0]) << row[0];
    EXPECT_NE(row[3], "") << row[0];
  }
}

// The names that can be queried.
std::set<std::string> Series() {
  std::set<std::string> series;
  for (const auto& row : Rows()) {
    if (row[1] != "histogram") {
      series.insert(row[0]);
      continue;
    }
    for (const char* part : {"_bucket", "_sum", "_count"}) series.insert(row[0] + part);
  }
  return series;
}

std::set<std::string> NamesIn(const std::string& text) {
  static const auto* const name = new std::regex(R"(\b(sluice|process)_[a-z_]+)");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), *name), end; it != end; ++it) {
    names.insert(it->str());
  }
  return names;
}

TEST(MetricTableTest, HasWhatTheAlertsUse) {
  const std::set<std::string> used = NamesIn(Read("alerts.yml"));
  EXPECT_THAT(used, Contains("sluice_journal_sync_seconds_bucket"));
  EXPECT_THAT(Series(), IsSupersetOf(used));
}

TEST(MetricTableTest, HasWhatTheDashboardUses) {
  const std::set<std::string> used = NamesIn(Read("grafana.json"));
  EXPECT_THAT(used, Contains("sluice_pushes_total"));
  EXPECT_THAT(Series(), IsSupersetOf(used));
  EXPECT_EQ(JsonAt(Read("grafana.json"), "title"), "Sluice");
}

}  // namespace
}  // namespace sluice
