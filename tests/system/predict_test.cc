// The examples of how to use what was trained, in C++ and in Python: both say the same of an image.

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
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

// Trains with that many servers, and returns what the job prints.
std::string Train(int servers, const std::string& data, const std::string& folder,
                  const Words& flags = {}) {
  const auto job =
      Mpirun({{servers,
               ServerProgram({absl::StrCat("--servers=", servers), "--checkpoint-dir=" + folder})},
              {2, With({RunfilePath("worker/sluice_train"), "--data-dir=" + data, "--seed=7",
                        "--momentum=0.9", "--max-steps=10", "--no-test", "--progress=off"},
                       flags)}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  return job->output();
}

// The easy data, and a LeNet that has seen it for some steps.
struct Trained {
  explicit Trained(int servers)
      : data(WriteEasyData(absl::StrCat(::testing::TempDir(), "data", servers), 640, 10)),
        folder(absl::StrCat(::testing::TempDir(), "kept", servers)) {
    Train(servers, data, folder);
  }

  std::string data;
  std::string folder;  // with its checkpoints
};

// Trained once for all tests, none of which changes it.
const Trained& TrainedWith(int servers) {
  static auto* const trained = new std::map<int, Trained>();
  return trained->try_emplace(servers, servers).first->second;
}

// What was trained, as a checkpoint of so many servers and as an export of it.
class PredictTest : public ::testing::TestWithParam<int> {
 protected:
  PredictTest() {
    std::filesystem::create_directories(folder_);
    std::filesystem::copy(trained_.folder, folder_);
    OutputOf({RunfilePath("tools/ctl/sluicectl"), "checkpoint", "export", checkpoint_, exported_},
             0);
  }

  // What a job makes of the parameters at `where`.
  std::string TrainedFrom(const std::string& where) const {
    const std::string folder = TestPath("next");
    std::filesystem::remove_all(folder);
    const std::string output = Train(1, trained_.data, folder, {"--init-from=" + where});
    return ClosingRows(output)["parameters' CRC-32"];
  }

  std::string InCpp(const std::string& checkpoint, const std::string& index, int code = 0) const {
    return OutputOf({RunfilePath("worker/torch/examples/predict"), checkpoint, images_, index},
                    code);
  }
  // That of the distribution, which has PyTorch.
  std::string InPython(const std::string& checkpoint, const std::string& index) const {
    return OutputOf(
        {"/usr/bin/env", "PYTHONPATH=" + RunfilePath("worker/python"), "PYTHONDONTWRITEBYTECODE=1",
         "SLUICE_LIBRARY=" + RunfilePath("worker/c/libsluice.so.0"), "/usr/bin/python3",
         RunfilePath("worker/torch/examples/predict.py"), checkpoint, images_, index},
        0);
  }

  // The stripe of the last of several servers.
  std::string LastStripe() const {
    return absl::StrCat("stripe-000001-000000000010-", GetParam() - 1, "-of-", GetParam(),
                        ".safetensors");
  }

  const Trained& trained_ = TrainedWith(GetParam());
  const std::string images_ = trained_.data + "/t10k-images-idx3-ubyte";
  const std::string folder_ = TestPath("kept");
  const std::string checkpoint_ = folder_ + "/checkpoint-000001-000000000010.safetensors";
  const std::string exported_ = TestPath("model.pt");
};

INSTANTIATE_TEST_SUITE_P(Servers, PredictTest, ::testing::Values(1, 3));

TEST_P(PredictTest, SaysTheSameInBothLanguagesOfACheckpointAndOfItsExport) {
  const std::string expected = InCpp(exported_, "3");
  EXPECT_THAT(LinesWith(expected, "class "), SizeIs(10)) << expected;
  for (const std::string& where : {checkpoint_, folder_}) {
    EXPECT_EQ(InCpp(where, "3"), expected);
    EXPECT_EQ(InPython(where, "3"), expected);
  }
  EXPECT_EQ(InPython(exported_, "3"), expected);
  EXPECT_NE(InCpp(checkpoint_, "4"), expected);
}

TEST_P(PredictTest, TrainingGoesOnFromACheckpointWithTheBitsOfItsExport) {
  const std::string expected = TrainedFrom(exported_);
  EXPECT_THAT(expected, SizeIs(8));
  EXPECT_EQ(TrainedFrom(checkpoint_), expected);
  EXPECT_EQ(TrainedFrom(folder_), expected);
}

using StripedPredictTest = PredictTest;
INSTANTIATE_TEST_SUITE_P(Servers, StripedPredictTest, ::testing::Values(3));

TEST_P(StripedPredictTest, SaysWhatOneServerWouldHaveSaved) {
  EXPECT_EQ(InCpp(folder_, "3"), InCpp(TrainedWith(1).folder, "3"));
}

TEST_P(StripedPredictTest, FindsStripesInDirectoriesOfTheirOwnAndNamesOneThatIsMissing) {
  const std::string expected = InCpp(folder_, "3");
  const std::string own = TestPath("own");
  std::filesystem::create_directories(own);
  std::filesystem::rename(folder_ + "/" + LastStripe(), own + "/" + LastStripe());
  EXPECT_EQ(InCpp(folder_ + "," + own, "3"), expected);
  EXPECT_EQ(InPython(folder_ + "," + own, "3"), expected);
  EXPECT_THAT(InCpp(folder_, "3", 1), HasSubstr(LastStripe() + " is missing"));
  EXPECT_THAT(InCpp(own + "/" + LastStripe(), "3", 1), HasSubstr("has one server's part"));
}

using OneServerPredictTest = PredictTest;
INSTANTIATE_TEST_SUITE_P(Servers, OneServerPredictTest, ::testing::Values(1));

TEST_P(OneServerPredictTest, SaysWhatIsWrong) {
  EXPECT_THAT(InCpp(checkpoint_, "10", 1), HasSubstr("holds images 0 to 9"));
  EXPECT_THAT(InCpp(checkpoint_, "third", 2), HasSubstr("usage: predict"));
  EXPECT_THAT(InCpp("/nowhere.pt", "3", 1), HasSubstr("/nowhere.pt"));
}

}  // namespace
}  // namespace sluice
