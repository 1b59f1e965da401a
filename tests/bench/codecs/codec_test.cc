// The race of codecs, small: on vectors that LeNet's training gives.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(CodecRaceTest, RacesEveryEncoding) {
  const auto race = Start({RunfilePath("tools/bench/codecs/codec_main"), "--passes=1",
                           "--least-megabytes=1", "--vectors=lenet-gradient,lenet-parameters"});
  EXPECT_THAT(race->Wait(kMeasurement), IsOkAndHolds(0)) << race->output();
  EXPECT_THAT(race->output(), HasSubstr("\nlenet-parameters, 61706 floats"));
  for (const char* name :
       {"none ", "float32/planes/zstd ", "float16 ", "bfloat16/planes/zstd ", "int8:stochastic ",
        "sign ", "top-k:0.01 ", "random-k:0.01 ", "low-rank:4 ", "blosc:lz4 ", "lz4 "}) {
    EXPECT_THAT(race->output(), HasSubstr(std::string("\n") + name)) << race->output();
  }
}

TEST(CodecRaceTest, KnowsNoOthers) {
  const auto race = Start({RunfilePath("tools/bench/codecs/codec_main"), "--only=gzip"});
  EXPECT_THAT(race->Wait(), IsOkAndHolds(2));
}

}  // namespace
}  // namespace sluice
