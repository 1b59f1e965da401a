// The examples of how to use what was trained, in C++ and in Python: both say the same of an image.

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/easy_data.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class PredictTest : public ::testing::Test {
 protected:
  // A LeNet that has seen the easy data for some steps, as a checkpoint and as an export of it.
  PredictTest() {
    Standalone server({"--checkpoint-dir=" + TestPath("kept")});
    OutputOf({RunfilePath("worker/sluice_train"), server.flag(), "--data-dir=" + data_,
              "--max-steps=20", "--no-test", "--progress=off"},
             0);
    EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
    OutputOf({RunfilePath("tools/ctl/sluicectl"), "checkpoint", "export", checkpoint_, exported_},
             0);
  }

  std::string InCpp(const std::string& file, const std::string& index, int code = 0) const {
    return OutputOf({RunfilePath("worker/torch/examples/predict"), file, images_, index}, code);
  }
  // That of the distribution, which has PyTorch.
  std::string InPython(const std::string& file, const std::string& index) const {
    return OutputOf(
        {"/usr/bin/python3", RunfilePath("worker/torch/examples/predict.py"), file, images_, index},
        0);
  }

  const std::string data_ = WriteEasyData(TestPath("data"), 640, 10);
  const std::string images_ = data_ + "/t10k-images-idx3-ubyte";
  const std::string checkpoint_ = TestPath("kept") + "/checkpoint-000001-000000000020.safetensors";
  const std::string exported_ = TestPath("model.pt");
};

TEST_F(PredictTest, SaysTheSameInBothLanguagesOfACheckpointAndOfItsExport) {
  const std::string expected = InCpp(checkpoint_, "3");
  EXPECT_THAT(LinesWith(expected, "class "), SizeIs(10)) << expected;
  EXPECT_EQ(InCpp(exported_, "3"), expected);
  EXPECT_EQ(InPython(checkpoint_, "3"), expected);
  EXPECT_EQ(InPython(exported_, "3"), expected);
  EXPECT_NE(InCpp(checkpoint_, "4"), expected);
}

TEST_F(PredictTest, SaysWhatIsWrong) {
  EXPECT_THAT(InCpp(checkpoint_, "10", 1), HasSubstr("holds images 0 to 9"));
  EXPECT_THAT(InCpp(checkpoint_, "third", 2), HasSubstr("usage: predict"));
  EXPECT_THAT(InCpp("/nowhere.pt", "3", 1), HasSubstr("/nowhere.pt"));
}

}  // namespace
}  // namespace sluice
