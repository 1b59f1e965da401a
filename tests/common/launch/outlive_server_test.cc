#include "common/launch/outlive_server.h"

#include <signal.h>

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

std::unique_ptr<Process> Worker(const Words& flags) {
  Words words = {RunfilePath("tests/common/launch/outlive_server_program")};
  words.insert(words.end(), flags.begin(), flags.end());
  return Start(words);
}

void ExpectWorksOnAndEndsBy(int signal, const Words& flags) {
  const auto worker = Worker(flags);
  ASSERT_THAT(worker->WaitForOutput("ready"), IsOk());
  worker->Signal(signal);
  EXPECT_THAT(worker->WaitForOutput("works on"), IsOk());
  EXPECT_THAT(worker->Wait(), IsOkAndHolds(-signal));
}

TEST(OutliveServerTest, AWorkerThatIsDoneAfterTheSignalWaitsAndEndsByTheSignal) {
  ExpectWorksOnAndEndsBy(SIGTERM, {"--wait"});
  ExpectWorksOnAndEndsBy(SIGINT, {"--wait"});
}

TEST(OutliveServerTest, AWorkerThatWorksOnEndsByTheSignal) {
  ExpectWorksOnAndEndsBy(SIGTERM, {"--work"});
}

TEST(OutliveServerTest, WithoutASignalAWorkerEndsAsItWants) {
  EXPECT_THAT(Worker({})->Wait(), IsOkAndHolds(3));
}

}  // namespace
}  // namespace sluice
