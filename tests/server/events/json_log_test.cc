// The lines of the JSON log. The table of server/events/README.md has exactly their fields.

#include "server/events/json_log.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/held_executor.h"
#include "tests/testing/json.h"
#include "tests/testing/process/process.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using Kind = JobChange::Kind;

// The fields of each event, as the table of the README has them; "all" of every one.
std::map<std::string, std::set<std::string>> WrittenFields() {
  std::map<std::string, std::set<std::string>> fields;
  std::ifstream readme(RunfilePath("server/events/README.md"));
  const std::regex row(R"(\| `(\w+)` \| ([^|]*)\|[^|]+\|)");
  const std::regex name("`(\\w+)`");
  for (std::string line; std::getline(readme, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    const std::string cell = match[2];
    auto& of_event = fields[match[1]];
    for (std::sregex_iterator it(cell.begin(), cell.end(), name), end; it != end; ++it) {
      of_event.insert((*it)[1]);
    }
  }
  return fields;
}

class JsonLogTest : public ::testing::Test {
 protected:
  JsonLogTest() {
    moment_.time = absl::FromUnixMillis(1'700'000'000'250);
    v1::ServerState& state = moment_.state;
    state.set_job_id("07466a53");
    state.set_incarnation(2);
    state.set_step(40);
    state.set_learning_rate(0.25);
    state.set_base_learning_rate(0.5);
    state.mutable_pushes()->set_accepted(9);
    state.mutable_last_checkpoint()->set_step(39);
    state.mutable_measurement()->set_step(38);
    (*state.mutable_measurement()->mutable_results())["test accuracy"] = 0.875;
    moment_.workers.resize(1);
    moment_.workers[0].set_worker("worker-1");
    moment_.workers[0].set_host("node7");
    moment_.workers[0].set_index(1);
    moment_.workers[0].set_accepted(5);
    warning_.set_kind(v1::LOSS_RISES);
    warning_.set_since(31);
    warning_.set_over(35);
    warning_.set_text("the loss rises");
    news_.loss = 1.5;
    news_.staleness = 2.25;
    news_.rates = JobRates{10, 20, 300, 400};
  }

  std::string Line(Kind kind) const {
    JobChange change{kind};
    if (kind >= Kind::kJoined) change.worker = &moment_.workers[0];
    if (kind == Kind::kWarning || kind == Kind::kWarningOver) change.warning = &warning_;
    JobNews news = news_;
    news.changes = {change};
    return ChangeLines(moment_, news)[0];
  }

  void LookAtAStep() {
    news_.changes = {{Kind::kStep}};
    log_.Look(moment_, news_);
  }

  std::vector<std::string> Log() const { return absl::StrSplit(text_, '\n', absl::SkipEmpty()); }
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    for (const std::string& line : Log()) events.push_back(JsonAt(line, "event"));
    return events;
  }

  JobMoment moment_;
  JobNews news_;
  v1::TrainingWarning warning_;
  bool full_ = false;
  std::string text_;
  JsonLog log_{std::make_unique<RecordFile>(
      "log",
      [this](absl::string_view bytes) {
        if (full_) return absl::UnavailableError("full");
        text_ += std::string(bytes);
        return absl::OkStatus();
      },
      std::make_unique<HeldExecutor>())};
};

TEST_F(JsonLogTest, EachLineSaysWhenAndWhere) {
  const std::string line = Line(Kind::kRate);
  EXPECT_EQ(line, R"({"time":"2023-11-14T22:13:20.250Z","event":"learning_rate","job":"07466a53",)"
                  R"("incarnation":2,"step":40,"learning_rate":0.5})"
                  "\n");
}

TEST_F(JsonLogTest, TellsWhoCameAndWent) {
  const std::string line = Line(Kind::kEvicted);
  EXPECT_EQ(JsonAt(line, "event"), "evicted");
  EXPECT_EQ(JsonAt(line, "worker"), "worker-1");
  EXPECT_EQ(JsonAt(line, "rank"), "1");
  EXPECT_EQ(JsonAt(line, "host"), "node7");
  EXPECT_EQ(JsonAt(line, "accepted"), "5");
}

TEST_F(JsonLogTest, TellsWhenAWarningBeganAndEnded) {
  const std::string line = Line(Kind::kWarningOver);
  EXPECT_EQ(JsonAt(line, "kind"), "loss_rises");
  EXPECT_EQ(JsonAt(line, "since"), "31");
  EXPECT_EQ(JsonAt(line, "over"), "35");
  EXPECT_EQ(JsonAt(line, "text"), "the loss rises");
  EXPECT_EQ(JsonAt(Line(Kind::kWarning), "over"), "absent");
}

TEST_F(JsonLogTest, TellsHowAStepGoes) {
  const std::string line = Line(Kind::kStep);
  EXPECT_EQ(JsonAt(line, "loss"), "1.5");
  EXPECT_EQ(JsonAt(line, "learning_rate"), "0.25");
  EXPECT_EQ(JsonAt(line, "staleness"), "2.25");
  EXPECT_EQ(JsonAt(line, "steps_per_second"), "10");
  EXPECT_EQ(JsonAt(line, "pushes_per_second"), "20");
  EXPECT_EQ(JsonAt(line, "received_bytes_per_second"), "300");
  EXPECT_EQ(JsonAt(line, "sent_bytes_per_second"), "400");
  EXPECT_EQ(JsonAt(line, "accepted"), "9");
  news_ = JobNews();
  for (const char* field : {"loss", "staleness", "steps_per_second"}) {
    EXPECT_EQ(JsonAt(Line(Kind::kStep), field), "absent");
  }
}

TEST_F(JsonLogTest, TellsWhatWasMeasuredAndOfWhichStep) {
  const std::string line = Line(Kind::kMeasured);
  EXPECT_EQ(JsonAt(line, "event"), "measured");
  EXPECT_EQ(JsonAt(line, "step"), "40");
  EXPECT_EQ(JsonAt(line, "of_step"), "38");
  EXPECT_EQ(JsonAt(line, "results.test accuracy"), "0.875");
}

TEST_F(JsonLogTest, ANameThatIsNoTextSpoilsNoLine) {
  moment_.workers[0].set_worker("a\n\"\xff");
  EXPECT_EQ(nlohmann::json::parse(Line(Kind::kJoined))["worker"], "a\n\"\xef\xbf\xbd");
}

TEST_F(JsonLogTest, TellsHowManyLinesWereLostOnceItCan) {
  full_ = true;
  LookAtAStep();
  LookAtAStep();  // loses two lines: one says that the first was lost
  full_ = false;
  log_.End(moment_);
  EXPECT_THAT(Events(), ElementsAre("lines_lost"));
  EXPECT_EQ(JsonAt(Log()[0], "lines"), "2");
  LookAtAStep();
  EXPECT_THAT(Events(), ElementsAre("lines_lost", "step"));
}

TEST_F(JsonLogTest, TheTableHasExactlyTheFieldsThatAreWritten) {
  std::vector<std::string> lines = {LostLine(moment_, 3)};
  for (int kind = 0; kind <= static_cast<int>(Kind::kEvicted); ++kind) {
    lines.push_back(Line(static_cast<Kind>(kind)));
  }
  std::map<std::string, std::set<std::string>> served;
  for (const std::string& line : lines) {
    const auto fields = nlohmann::json::parse(line);
    auto& of_event = served[fields["event"]];
    for (const auto& field : fields.items()) of_event.insert(field.key());
  }
  auto written = WrittenFields();
  const std::set<std::string> all = written["all"];
  written.erase("all");
  EXPECT_EQ(all.size(), 5);
  for (auto& of_event : written) of_event.second.insert(all.begin(), all.end());
  EXPECT_EQ(written, served);
}

}  // namespace
}  // namespace sluice
