// What a collector takes from a trace.

#include "common/trace/trace_collector.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/status.h"
#include "tests/testing/trace_events.h"

namespace sluice {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class TraceCollectorTest : public ::testing::Test {
 protected:
  void Add(const std::string& row, const char* name) {
    trace_.Add(row, name, clock_.Now(), clock_.Now() + absl::Milliseconds(1));
  }

  // As sluicectl makes a file of them.
  static std::vector<TracedSpan> Read(const std::string& events) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/collected.json");
    std::ofstream(path) << "[\n" << events << "\n]\n";
    const auto spans = ReadTrace(path);
    EXPECT_THAT(spans, IsOk()) << events;
    return spans.ok() ? *spans : std::vector<TracedSpan>();
  }

  FakeClock clock_;
  Trace trace_{absl::nullopt, "server", clock_};
};

TEST_F(TraceCollectorTest, ATraceWithoutAFileRecordsOnlyForCollectors) {
  EXPECT_FALSE(trace_.records());
  EXPECT_EQ(Recording(&trace_), nullptr);
  {
    const TraceCollector collector(trace_);
    EXPECT_TRUE(trace_.records());
    const TraceCollector second(trace_);
  }
  EXPECT_FALSE(trace_.records());
}

TEST_F(TraceCollectorTest, TakesEachSpanOnceWithTheNamesOfItsProcessAndRow) {
  Add("steps", "before");
  TraceCollector collector(trace_);
  Add("steps", "apply");
  Add("push a", "push");
  const TraceCollector::Taken first = collector.Take();
  EXPECT_EQ(first.spans, 2);
  Add("push a", "push");
  const TraceCollector::Taken second = collector.Take();
  EXPECT_EQ(second.spans, 1);
  const std::vector<TracedSpan> spans = Read(absl::StrCat(first.events, ",\n", second.events));
  ASSERT_THAT(spans, SizeIs(3));
  for (const TracedSpan& span : spans) EXPECT_EQ(span.process, "server");
  EXPECT_EQ(spans[0].row, "steps");
  EXPECT_EQ(spans[0].name, "apply");
  EXPECT_EQ(spans[1].row, "push a");
  EXPECT_EQ(spans[2].row, "push a");
  EXPECT_THAT(collector.Take().events, IsEmpty());
}

TEST_F(TraceCollectorTest, CountsWhatHasNoRoom) {
  TraceCollector collector(trace_);
  for (size_t i = 0; i < TraceCollector::kMostWaiting + 5; ++i) Add("steps", "apply");
  const TraceCollector::Taken taken = collector.Take();
  EXPECT_EQ(taken.spans, TraceCollector::kMostWaiting);
  EXPECT_EQ(taken.missed, 5);
  EXPECT_LT(taken.events.size(), 3 << 20);
  Add("steps", "apply");
  const TraceCollector::Taken next = collector.Take();
  EXPECT_EQ(next.spans, 1);
  EXPECT_EQ(next.missed, 0);
}

TEST_F(TraceCollectorTest, WhatBeginsWhileNobodyRecordsIsLeftOut) {
  {
    const TraceSpan span(&trace_, "steps", "apply");
    TraceCollector collector(trace_);
    Add("steps", "add");
    EXPECT_EQ(collector.Take().spans, 1);
  }
  TraceCollector collector(trace_);
  { const TraceSpan span(&trace_, "steps", "apply"); }
  EXPECT_EQ(collector.Take().spans, 1);
}

}  // namespace
}  // namespace sluice
