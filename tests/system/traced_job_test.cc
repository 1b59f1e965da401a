// --trace, as a user gives it to a whole job.

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"
#include "tests/testing/trace_events.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

constexpr absl::Duration kJob = absl::Minutes(2);
constexpr int kSteps = 300;  // of worker/torch/examples/example_main.cc
const char* const kWorkers[] = {"worker-0", "worker-1"};

// Of all jobs here: each replaces the trace of the one before.
std::string TracePath() { return absl::StrCat(::testing::TempDir(), "/trace.json"); }

std::string Example() { return RunfilePath("worker/torch/examples/example"); }

// Runs a job of a server and two workers, and reads what all of them wrote to one file.
std::vector<TracedSpan> TraceOfJob(const Words& flags = {}) {
  const std::string path = TracePath();
  Words words = {Example(), "--sluice-trace=" + path};
  words.insert(words.end(), flags.begin(), flags.end());
  const auto job = Mpirun({{3, words}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  auto spans = ReadTrace(path);
  EXPECT_THAT(spans, IsOk());
  return spans.ok() ? *spans : std::vector<TracedSpan>();
}

std::set<std::string> NamesOf(const std::vector<TracedSpan>& spans, const std::string& process) {
  std::set<std::string> names;
  for (const TracedSpan& span : spans) {
    if (span.process == process) names.insert(span.name);
  }
  return names;
}

// Of a job without further flags, which runs once.
const std::vector<TracedSpan>& PlainTrace() {
  static const auto* const spans = new std::vector<TracedSpan>(TraceOfJob());
  return *spans;
}

TEST(TracedJobTest, HasEveryKindOfSpanOfEveryProcess) {
  const std::vector<TracedSpan>& spans = PlainTrace();
  for (const char* worker : kWorkers) {
    EXPECT_THAT(NamesOf(spans, worker),
                IsSupersetOf({"compute", "encode", "push", "wait", "pull", "decode"}));
    EXPECT_THAT(SpansOf(spans, worker, "compute"), SizeIs(kSteps));
    EXPECT_THAT(SpansOf(spans, worker, "push"), SizeIs(kSteps));
  }
  EXPECT_THAT(NamesOf(spans, "server"), IsSupersetOf({"push", "add", "apply", "pull"}));
  EXPECT_EQ(BadlyNested(spans), "");
}

size_t CountInRow(const std::vector<TracedSpan>& spans, const std::string& row) {
  return static_cast<size_t>(std::count_if(
      spans.begin(), spans.end(), [&row](const TracedSpan& span) { return span.row == row; }));
}

TEST(TracedJobTest, ReplacesTheTraceOfAnEarlierJobAndShowsWhatEncodingsTake) {
  PlainTrace();
  const auto spans =
      TraceOfJob({"--sluice-push-encoding=none,*=int8", "--sluice-pull-encoding=bfloat16"});
  for (const char* worker : kWorkers) {
    EXPECT_THAT(SpansOf(spans, worker, "compute"), SizeIs(kSteps));
    const size_t encodes = CountInRow(SpansOf(spans, worker, "encode"), "push");
    EXPECT_GE(encodes, static_cast<size_t>(kSteps));
    EXPECT_EQ(CountInRow(SpansOf(spans, "server", "decode"), absl::StrCat("push ", worker)),
              encodes);
    EXPECT_GE(CountInRow(SpansOf(spans, "server", "encode"), absl::StrCat("pull ", worker)),
              static_cast<size_t>(kSteps));
  }
  EXPECT_EQ(BadlyNested(spans), "");
}

TEST(TracedJobTest, OrdersEveryRoundOnOneClock) {
  const std::vector<TracedSpan>& spans = PlainTrace();
  const std::vector<TracedSpan> applies = SpansOf(spans, "server", "apply");
  ASSERT_THAT(applies, SizeIs(kSteps));
  for (const char* worker : kWorkers) {
    const std::vector<TracedSpan> pushes = SpansOf(spans, worker, "push");
    std::vector<TracedSpan> pulls = SpansOf(spans, worker, "pull");
    ASSERT_THAT(pushes, SizeIs(kSteps));
    pulls.erase(pulls.begin(), pulls.end() - kSteps);  // the first parameters
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_EQ(pushes[step].step, step);
      EXPECT_EQ(applies[step].step, step);
      EXPECT_EQ(pulls[step].step, step + 1);
      EXPECT_LE(pushes[step].begin, applies[step].begin);
      EXPECT_LE(applies[step].end, pulls[step].begin);
    }
  }
}

TEST(TracedJobTest, IsRefusedIfItCannotBeWritten) {
  const auto server = Start(
      {RunfilePath("server/sluice_server"), "--listen=127.0.0.1:0", "--trace=/nonexistent/t"});
  EXPECT_THAT(server->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(server->output(), HasSubstr("cannot write the trace /nonexistent/t: No such file"));
  const auto worker =
      Start({Example(), "--sluice-server=127.0.0.1:1", "--sluice-trace=/nonexistent/t"});
  EXPECT_THAT(worker->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(worker->output(), HasSubstr("cannot write the trace /nonexistent/t: No such file"));
}

TEST(TracedJobTest, IsRefusedWithoutAServer) {
  const auto alone =
      Start({RunfilePath("worker/sluice_train"), "--role=single", "--trace=" + TracePath()});
  EXPECT_THAT(alone->Wait(), IsOkAndHolds(2));
  EXPECT_THAT(alone->output(), HasSubstr("--role=single has none"));
}

}  // namespace
}  // namespace sluice
