// The lines of the log that the server keeps, and the stream that tells them.

#include "server/rpc/operator/read_logs.h"

#include <glog/logging.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/wire/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Texts(const std::vector<LoggedLine>& lines) {
  std::vector<std::string> texts;
  for (const LoggedLine& line : lines) texts.push_back(line.text);
  return texts;
}

TEST(LogRingTest, KeepsWhatIsLoggedWhileItExists) {
  LOG(INFO) << "before";
  const LogRing ring;
  LOG(INFO) << "first";
  LOG(WARNING) << "second";
  const std::vector<LoggedLine> lines = ring.After(0, 10);
  EXPECT_THAT(Texts(lines), ElementsAre("first", "second"));
  EXPECT_EQ(lines[1].severity, "WARNING");
  EXPECT_THAT(lines[1].source, HasSubstr("read_logs_test.cc:"));
  EXPECT_THAT(Texts(ring.After(0, 1)), ElementsAre("second"));
  EXPECT_THAT(Texts(ring.After(1, 10)), ElementsAre("second"));
  EXPECT_THAT(ring.After(2, 10), IsEmpty());
}

TEST(LogRingTest, ForgetsTheOldestLines) {
  const LogRing ring;
  for (size_t i = 1; i <= LogRing::kMostLines + 2; ++i) LOG(INFO) << i;
  const std::vector<LoggedLine> lines = ring.After(0, 5000);
  EXPECT_THAT(lines, SizeIs(LogRing::kMostLines));
  EXPECT_EQ(lines.front().text, "3");
  EXPECT_EQ(lines.front().number, 3);
}

TEST(LogRingTest, CutsLongLinesBetweenCharactersAndEscapesWhatIsNoText) {
  const LogRing ring;
  const std::string most(LogRing::kMostLineBytes - 1, 'x');
  LOG(INFO) << most << "é and more";
  LOG(INFO) << "a\xff";
  EXPECT_THAT(Texts(ring.After(0, 2)), ElementsAre(most, "a\\xff"));
}

class ReadLogsTest : public ::testing::Test {
 protected:
  // The texts that come until the call ends.
  absl::StatusOr<std::vector<std::string>> Read(const v1::ReadLogsRequest& request) {
    const auto context = world_.Context();
    const auto stream = world_.admin().ReadLogs(context.get(), request);
    std::vector<std::string> texts;
    v1::ReadLogsResponse response;
    while (stream->Read(&response)) {
      for (const v1::LogLine& line : response.lines()) texts.push_back(line.text());
    }
    const absl::Status end = FromGrpcStatus(stream->Finish());
    if (!end.ok()) return end;
    return texts;
  }

  ServerWorld world_{Sync(1)};
};

TEST_F(ReadLogsTest, SendsTheLatestLinesAndEnds) {
  for (const char* text : {"one", "two", "three"}) LOG(INFO) << text;
  v1::ReadLogsRequest request;
  request.set_lines(2);
  EXPECT_THAT(Read(request), IsOkAndHolds(ElementsAre("two", "three")));
}

TEST_F(ReadLogsTest, FollowsTheLogUntilTheServerEnds) {
  LOG(INFO) << "old";
  v1::ReadLogsRequest request;
  request.set_lines(1);
  request.set_follow(true);
  const auto context = world_.Context();
  const auto stream = world_.admin().ReadLogs(context.get(), request);
  v1::ReadLogsResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.lines(0).text(), "old");
  LOG(WARNING) << "new";
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.lines(0).text(), "new");
  EXPECT_EQ(response.lines(0).severity(), "WARNING");
  EXPECT_EQ(response.missed(), 0);
  world_.Stop(absl::Seconds(10));
  while (stream->Read(&response)) continue;
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ReadLogsTest, RefusesMoreLinesThanItKeeps) {
  v1::ReadLogsRequest request;
  request.set_lines(1001);
  EXPECT_THAT(Read(request), IsError(Reason::kBadArgument,
                                     HasSubstr("field lines is 1001, expected at most 1000")));
}

TEST(ReadLogsAccessTest, NeedsTheToken) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  grpc::ClientContext stranger;
  const auto stream = world.admin().ReadLogs(&stranger, v1::ReadLogsRequest());
  v1::ReadLogsResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_THAT(FromGrpcStatus(stream->Finish()), IsError(Reason::kBadToken, HasSubstr("token")));
}

}  // namespace
}  // namespace sluice
