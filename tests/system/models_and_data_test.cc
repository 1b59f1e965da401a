// sluice_train with data sets and models of each kind, from files that the test writes.

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// An empty folder of the running test.
std::string Folder() {
  const std::string folder = TestPath("data");
  std::filesystem::create_directories(folder);
  return folder;
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Images in the form of CIFAR-10: red ones of class 0, green ones of class 1, blue ones of class 2.
std::string Cifar(int images) {
  std::string bytes;
  for (int i = 0; i < images; ++i) {
    const int label = i % 3;
    bytes += static_cast<char>(label);
    for (int channel = 0; channel < 3; ++channel) {
      bytes += std::string(32 * 32, channel == label ? static_cast<char>(200) : '\0');
    }
  }
  return bytes;
}

// Samples whose label is the sign of the first feature. The others, out of a thousand, say nothing.
std::string Libsvm(int samples, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < samples; ++i) {
    const int label = i % 2 == 0 ? 1 : -1;
    absl::StrAppend(&text, label, " 1:", label, " ", 2 + random() % 999, ":0.1\n");
  }
  return text;
}

Words Train(const Words& flags) {
  return With({RunfilePath("worker/sluice_train"), "--progress=off"}, flags);
}

double AccuracyIn(const std::string& output) {
  double accuracy = -1;
  for (const std::string& line : LinesWith(output, "test accuracy ")) {
    if (absl::SimpleAtod(absl::StripPrefix(line, "test accuracy "), &accuracy)) break;
  }
  return accuracy;
}

TEST(ModelsAndDataTest, TrainsOnColourImagesThatAreCroppedAndMirrored) {
  const std::string folder = Folder();
  for (int file = 1; file <= 5; ++file) {
    Write(absl::StrCat(folder, "/data_batch_", file, ".bin"), Cifar(100));
  }
  Write(folder + "/test_batch.bin", Cifar(50));
  const std::string output =
      OutputOf(Train({"--role=single", "--dataset=cifar10", "--data-dir=" + folder, "--model=lenet",
                      "--augment=crop,flip", "--data-threads=2", "--batch-size=20",
                      "--learning-rate=0.01", "--momentum=0.9", "--epochs=4"}),
               0);
  EXPECT_GT(AccuracyIn(output), 0.9) << output;
}

TEST(ModelsAndDataTest, TwoWorkersLearnALinearModelOfSparseRows) {
  const std::string folder = Folder();
  Write(folder + "/train.libsvm", Libsvm(400, 1));
  Write(folder + "/test.libsvm", Libsvm(100, 2));
  const auto job =
      Mpirun({{1, ServerProgram()},
              {2, Train({"--dataset=libsvm", "--data-dir=" + folder, "--model=logistic",
                         "--batch-size=10", "--epochs=5", "--learning-rate=0.5"})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "test accuracy 1.0000"), SizeIs(1)) << job->output();
}

TEST(ModelsAndDataTest, WorkersTrainAModelThatPythonSaved) {
  const std::string model = TestPath("model.pt");
  OutputOf({"/usr/bin/python3", RunfilePath("tests/worker/torch/models/save_script.py"), model,
            "script", "10"},
           0);
  const auto job = Mpirun({{1, ServerProgram()},
                           {2, Train({"--model=" + model, "--max-steps=30", "--momentum=0.9",
                                      "--learning-rate=0.05"})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  EXPECT_GT(AccuracyIn(job->output()), 0.4) << job->output();
}

// Each epoch drops the row that is left over, so no batch has one sample.
TEST(ModelsAndDataTest, ARowThatIsLeftOverMakesNoBatch) {
  const std::string folder = Folder();
  Write(folder + "/train.libsvm", Libsvm(65, 1));
  Write(folder + "/test.libsvm", Libsvm(33, 2));
  const std::string output =
      OutputOf(With({RunfilePath("worker/sluice_train")},
                    {"--role=single", "--dataset=libsvm", "--data-dir=" + folder, "--model=mlp",
                     "--batch-size=32", "--epochs=2", "--progress=plain"}),
               0);
  EXPECT_THAT(output, HasSubstr("epoch 2  step 4  loss"));
}

TEST(ModelsAndDataTest, AWorkerWhoseModelCannotNormalizeABatchDoesNotJoin) {
  const std::string folder = Folder();
  Write(folder + "/train.libsvm", Libsvm(40, 1));
  Write(folder + "/test.libsvm", Libsvm(40, 2));
  const Words flags = {"--dataset=libsvm", "--data-dir=" + folder, "--model=mlp"};
  Standalone server({"--workers=1"});
  EXPECT_THAT(OutputOf(Train(With(flags, {server.flag(), "--batch-size=1"})), 2),
              HasSubstr("the model mlp cannot be trained on batches of one sample"));
  // A job whose only worker had come and gone would be over.
  OutputOf(Train(With(flags, {server.flag(), "--batch-size=2"})), 0);
}

// Others would wait for a worker that joined and cannot train.
TEST(ModelsAndDataTest, AWorkerWithBadTrainingDataDoesNotJoin) {
  const std::string folder = Folder();
  Write(folder + "/train.libsvm", Libsvm(40, 1) + "1 0:1\n");
  Write(folder + "/test.libsvm", Libsvm(40, 2));
  Standalone server({"--workers=1"});
  EXPECT_THAT(OutputOf(Train({server.flag(), "--dataset=libsvm", "--data-dir=" + folder,
                              "--model=logistic"}),
                       2),
              HasSubstr("train.libsvm: line 41: found \"0:1\""));
  // A job whose only worker had come and gone would be over.
  Write(folder + "/train.libsvm", Libsvm(40, 1));
  OutputOf(Train({server.flag(), "--dataset=libsvm", "--data-dir=" + folder, "--model=logistic"}),
           0);
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
}

TEST(ModelsAndDataTest, SaysWhatDoesNotFit) {
  const std::string folder = Folder();
  Write(folder + "/train.libsvm", Libsvm(40, 1));
  Write(folder + "/test.libsvm", Libsvm(40, 2));
  const Words sparse = {"--role=single", "--dataset=libsvm", "--data-dir=" + folder};
  EXPECT_THAT(OutputOf(Train(With(sparse, {"--model=vgg16"})), 2),
              HasSubstr("vgg16 takes images of at least 16 x 16, found samples of 1 x "));
  EXPECT_THAT(OutputOf(Train(With(sparse, {"--model=mlp", "--augment=flip"})), 2),
              HasSubstr("only images can be cropped or mirrored"));
  EXPECT_THAT(OutputOf(Train({"--role=single", "--dataset=cifar10"}), 2),
              HasSubstr("--dataset=cifar10 needs --data-dir"));
  EXPECT_THAT(OutputOf(Train({"--model=resnet20"}), 2), HasSubstr("expected one of logistic, mlp"));
}

}  // namespace
}  // namespace sluice
