#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/programs.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string OneStep(const Words& flags) {
  const Standalone server({"--workers=1"});
  return OutputOf(With({RunfilePath("tests/testing/process/pushing_worker_program"), "--steps=1",
                        "--gradient=1", server.flag()},
                       flags),
                  0);
}

TEST(PushingWorkerTest, PushesInTheEncodingThatItWasGiven) {
  EXPECT_THAT(OneStep({}), HasSubstr("parameters at step 1: -1 to -1\n"));
  EXPECT_THAT(OneStep({"--push-encoding=top-k:0.5"}), HasSubstr("parameters at step 1: -1 to 0\n"));
}

}  // namespace
}  // namespace sluice
