// The trace file and its content.

#include "common/trace/trace.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status.h"
#include "tests/testing/trace_events.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration kMs = absl::Milliseconds(1);
constexpr double kPrecision = 1;  // of microseconds since 1970 in a double

class TraceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Trace> Open(const std::string& process,
                              Existing existing = Existing::kContinued) {
    return Trace::Open(path_, existing, process, clock_).value();
  }

  std::vector<TracedSpan> Read() const {
    auto spans = ReadTrace(path_);
    EXPECT_THAT(spans, IsOk()) << Text();
    return spans.ok() ? *spans : std::vector<TracedSpan>();
  }

  std::string Text() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  static double Micros(absl::Time time) {
    return absl::ToDoubleMicroseconds(time - absl::UnixEpoch());
  }

  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "/",
                   ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".json");
  FakeClock clock_;
};

TEST_F(TraceTest, HoldsTheSpansUnderTheNamesOfTheirProcessAndRow) {
  const absl::Time begin = clock_.Now();
  {
    const auto trace = Open("worker-0");
    const TraceSpan outer(trace.get(), "training", "compute", Step(7));
    clock_.Advance(3 * kMs);
    const TraceSpan inner(trace.get(), "training", "encode");
    clock_.Advance(2 * kMs);
  }
  const std::vector<TracedSpan> spans = Read();
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_EQ(spans[0].process, "worker-0");
  EXPECT_EQ(spans[0].row, "training");
  EXPECT_EQ(spans[0].name, "compute");
  EXPECT_EQ(spans[0].step, 7);
  EXPECT_NEAR(spans[0].begin, Micros(begin), kPrecision);
  EXPECT_NEAR(spans[0].end - spans[0].begin, 5000, kPrecision);
  EXPECT_EQ(spans[1].name, "encode");
  EXPECT_EQ(spans[1].step, -1);
  EXPECT_NEAR(spans[1].begin, Micros(begin + 3 * kMs), kPrecision);
  EXPECT_EQ(BadlyNested(spans), "");
}

TEST_F(TraceTest, NoticesSpansThatAreNotNested) {
  {
    const auto trace = Open("worker-0");
    trace->Add("a", "first", clock_.Now(), clock_.Now() + 2 * kMs);
    trace->Add("b", "elsewhere", clock_.Now(), clock_.Now() + 9 * kMs);
    trace->Add("a", "second", clock_.Now() + kMs, clock_.Now() + 3 * kMs);
  }
  EXPECT_EQ(BadlyNested(Read()), "worker-0 a: second reaches out of first\n");
}

TEST_F(TraceTest, CostsNothingAndWritesNothingWithoutATrace) {
  TraceSpan span(nullptr, "training", "compute");
  span.set_step(Step(1));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TraceTest, TellsTimesByTheServersClock) {
  const absl::Time sent = clock_.Now();
  {
    const auto trace = Open("worker-0");
    trace->NoteRoundTrip(sent, sent + absl::Hours(2) + kMs, sent + 2 * kMs);
    trace->Add("training", "compute", sent, sent + kMs);
  }
  EXPECT_NEAR(Read()[0].begin, Micros(sent + absl::Hours(2)), kPrecision);
}

TEST_F(TraceTest, IsBegunAnewOrGoneOnWith) {
  Open("old")->Add("row", "span", clock_.Now(), clock_.Now());
  Open("server", Existing::kEmptied)->Add("row", "span", clock_.Now(), clock_.Now());
  Open("worker-0")->Add("row", "span", clock_.Now(), clock_.Now());
  EXPECT_THAT(Read(), SizeIs(2));
  EXPECT_THAT(Text(), AllOf(HasSubstr("\"server\""), HasSubstr("\"worker-0\"")));
  EXPECT_THAT(Text(), Not(HasSubstr("\"old\"")));
}

TEST_F(TraceTest, IsNotEmptiedWhileAnotherProcessWritesIt) {
  auto other = TraceFile::Open(path_, Existing::kEmptied).value();
  ASSERT_THAT(other.Append(R"({"name": "other's"})"), IsOk());
  Open("server", Existing::kEmptied)->Add("row", "span", clock_.Now(), clock_.Now());
  EXPECT_THAT(Text(), AllOf(HasSubstr("other's"), HasSubstr("\"server\"")));
}

TEST_F(TraceTest, QuotesNames) {
  Open("a \"b\" \\ c\n")->Add("row", "span", clock_.Now(), clock_.Now());
  EXPECT_EQ(Read()[0].process, "a \"b\" \\ c ");
}

TEST_F(TraceTest, IsWholeAfterEveryAppendOfManyWriters) {
  constexpr int kWriters = 4;
  constexpr int kSpans = 5000;  // several writes each
  std::vector<std::thread> writers;
  // Each Trace opens the file itself, as separate processes would.
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([this, i] {
      auto file = TraceFile::Open(path_, Existing::kContinued).value();
      for (int span = 0; span < kSpans; ++span) {
        EXPECT_THAT(file.Append(absl::StrCat(R"({"writer":)", i, "}")), IsOk());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string text = Text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), kWriters * kSpans);
  EXPECT_EQ(text.substr(0, 3), "[\n{");
  EXPECT_EQ(text.substr(text.size() - 4), "}\n]\n");
  EXPECT_EQ(std::count(text.begin(), text.end(), ','), kWriters * kSpans - 1);
}

TEST_F(TraceTest, WritesManySpansOfManyThreads) {
  {
    const auto trace = Open("server");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&trace, i] {
        const std::string row = absl::StrCat("row ", i);
        for (int span = 0; span < 3000; ++span) TraceSpan(trace.get(), row, "span");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_THAT(SpansOf(Read(), "server", "span"), SizeIs(12000));
}

TEST_F(TraceTest, RefusesAPathThatCannotBeWritten) {
  EXPECT_THAT(Trace::Open("/nonexistent/trace.json", Existing::kContinued, "server", clock_),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("cannot write the trace /nonexistent/trace.json: No such file")));
  EXPECT_THAT(Trace::Open("/dev/full", Existing::kContinued, "server", clock_),
              HasCode(absl::StatusCode::kInvalidArgument,
                      HasSubstr("/dev/full is a device, expected a regular file")));
}

// A limit on the size of files stands for a full disk.
TEST_F(TraceTest, EndsWholeWhereTheDiskIsFull) {
  signal(SIGXFSZ, SIG_IGN);
  Open("server")->Add("row", "first", clock_.Now(), clock_.Now());
  const auto trace = Open("worker-0");
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  // The line in the log still fits.
  const rlimit little = {Text().size() + 1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5000; ++i) trace->Add("row", "lost", clock_.Now(), clock_.Now());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the trace ends here, and training continues"));
  EXPECT_EQ(log.find("ends here"), log.rfind("ends here")) << log;
  EXPECT_THAT(Read(), SizeIs(1));
}

}  // namespace
}  // namespace sluice
