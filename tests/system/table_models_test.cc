// sluice_train and sluice_evaluate with models that have tables: a job trains what one process
// trains, and an evaluator sees what it has trained.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kBatch = 512;  // of all workers

// A WordNet whose nouns are a ring.
std::string RingOfSynsets(int synsets) {
  const std::string folder = TestPath("wordnet");
  std::filesystem::create_directories(folder);
  std::ofstream nouns(folder + "/data.noun");
  const auto place = [](int number) { return absl::StrCat(10'000'000 + number); };
  for (int i = 0; i < synsets; ++i) {
    nouns << place(i) << " 03 n 01 word 0 001 ~ " << place((i + 1) % synsets) << " n 0000 | word\n";
  }
  for (const char* part : {"verb", "adj", "adv"}) std::ofstream(folder + "/data." + part);
  return folder;
}

Words Train(const Words& flags) {
  return With({RunfilePath("worker/sluice_train"), "--progress=off", "--optimizer=adagrad",
               "--max-steps=10"},
              flags);
}

Words OfBatch(int size, const Words& flags) {
  return With(flags, {absl::StrCat("--batch-size=", size)});
}

// What training prints about the test: "loss 0.497921", then perhaps a metric.
std::vector<std::string> TestsIn(const std::string& output) {
  std::vector<std::string> tests;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::StartsWith(line, "test ")) tests.emplace_back(line);
  }
  return tests;
}

std::vector<std::string> TestsOf(Process& process) {
  EXPECT_THAT(process.Wait(kJob), IsOkAndHolds(0)) << process.output();
  return TestsIn(process.output());
}

double LossIn(const std::vector<std::string>& tests) {
  EXPECT_FALSE(tests.empty());
  if (tests.empty() || !absl::StartsWith(tests.front(), "test loss ")) return -1;
  return std::strtod(tests.front().c_str() + sizeof("test loss ") - 1, nullptr);
}

// Two workers add their halves of a batch in another order than one process adds the whole, and
// Adagrad's first steps are large whatever the gradient. A second server changes no bit.
void ExpectTheLossOfOneProcess(const Words& model) {
  const std::vector<std::string> alone =
      TestsOf(*Start(Train(OfBatch(kBatch, With(model, {"--role=single"})))));
  const Ranks workers = {2, Train(OfBatch(kBatch / 2, model))};
  const auto job = Mpirun({{1, ServerProgram()}, workers});
  const std::vector<std::string> served = TestsOf(*job);
  EXPECT_EQ(served.size(), alone.size());
  EXPECT_NEAR(LossIn(served), LossIn(alone), 1e-3);
  EXPECT_NEAR(LossIn({"test loss " + ClosingRows(job->output())["test loss"]}), LossIn(served),
              1e-4);
  EXPECT_EQ(TestsOf(*Mpirun({{2, ServerProgram({"--servers=2"})}, workers})), served);
}

TEST(TableModelsTest, MatrixFactorizationHasTheLossOfOneProcess) {
  ExpectTheLossOfOneProcess({"--model=matrix-factorization", "--learning-rate=0.5"});
}

TEST(TableModelsTest, DlrmHasTheLossOfOneProcess) {
  ExpectTheLossOfOneProcess({"--model=dlrm", "--learning-rate=0.05"});
}

TEST(TableModelsTest, WordnetHasTheLossOfOneProcess) {
  ExpectTheLossOfOneProcess({"--model=wordnet", "--learning-rate=0.1",
                             "--data-dir=" + RingOfSynsets(2000), "--epochs=10"});
}

// One worker adds as one process does. SGD with a rate that is a power of two then makes the same
// bits. LibTorch's Adagrad rounds once where the server rounds twice
// (worker/torch/table_models/README.md), which the first steps do not show.
TEST(TableModelsTest, OneWorkerHasTheLossOfOneProcess) {
  for (const Words& flags : {Words{"--optimizer=sgd", "--max-steps=60"},
                             Words{"--optimizer=adagrad", "--max-steps=5"}}) {
    const Words model = With({"--model=matrix-factorization", "--learning-rate=0.5"}, flags);
    const auto alone = TestsOf(*Start(Train(OfBatch(kBatch, With(model, {"--role=single"})))));
    EXPECT_THAT(alone, SizeIs(1));
    EXPECT_EQ(TestsOf(*Mpirun({{1, ServerProgram()}, {1, Train(OfBatch(kBatch, model))}})), alone);
  }
}

// The only other parameter is too small to be encoded, so that its momentum makes the same bits on
// the worker.
TEST(TableModelsTest, AnEncodingThatTakesTheMomentumOfTheVectorLeavesRowsTheirs) {
  const Words model = OfBatch(kBatch, {"--model=matrix-factorization", "--optimizer=sgd",
                                       "--momentum=0.9", "--learning-rate=0.5"});
  const auto plain = TestsOf(*Mpirun({{1, ServerProgram()}, {1, Train(model)}}));
  EXPECT_THAT(plain, SizeIs(1));
  EXPECT_EQ(TestsOf(*Mpirun({{1, ServerProgram()},
                             {1, Train(With(model, {"--push-encoding=sign:momentum"}))}})),
            plain);
}

TEST(TableModelsTest, EveryModeAndEncodingTrains) {
  for (const Words& flags :
       {Words{"--mode=async", "--push-encoding=float16", "--pull-encoding=int8"},
        Words{"--mode=ssp", "--optimizer=adam", "--overlap"}}) {
    const std::string record = TestPath("record.json");
    const auto job = Mpirun({{3, Train(With({"--model=matrix-factorization", "--json=" + record},
                                            OfBatch(64, flags)))}});
    EXPECT_THAT(TestsOf(*job), SizeIs(1)) << job->output();
    std::ifstream file(record);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_THAT(LinesWith(text, "\"test_samples\":20000,\"test_loss\":"), SizeIs(1));
    std::filesystem::remove(record);
  }
}

// ---- Evaluation ----

struct Evaluated {
  double step = 0;
  std::string told;  // the loss and the metric, as training tells them
};

std::vector<Evaluated> EvaluatedIn(const std::string& path) {
  std::vector<Evaluated> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    all.push_back(
        {JsonNumberAt(line, "step"),
         absl::StrFormat("test loss %.6f test area under curve %.4f", JsonNumberAt(line, "loss"),
                         JsonNumberAt(line, "area_under_curve"))});
  }
  return all;
}

Words EvaluateDlrm(const Words& flags) {
  return With({RunfilePath("tools/evaluate/sluice_evaluate"), "--model=dlrm", "--quiet"}, flags);
}

std::vector<std::unique_ptr<Process>> StartServers(int servers, const std::string& directory,
                                                   std::string* address) {
  std::vector<std::string> addresses;
  for (int i = 0; i < servers; ++i) addresses.push_back(absl::StrCat("127.0.0.1:", FreePort()));
  *address = addresses[0];
  std::vector<std::unique_ptr<Process>> serving;
  for (int i = 0; i < servers; ++i) {
    const Words place = servers == 1 ? Words{"--listen=" + addresses[0]}
                                     : Words{"--servers=" + absl::StrJoin(addresses, ","),
                                             absl::StrCat("--index=", i)};
    serving.push_back(Start(ServerProgram(
        With(place, {"--workers=1", "--checkpoint-dir=" + directory, "--checkpoint-every=20"}))));
    EXPECT_THAT(serving.back()->WaitForOutput("listening on " + addresses[i]), IsOk());
  }
  return serving;
}

// Follows a job of that many servers, and ends with what its worker measured. Then the checkpoints
// say the same.
void ExpectTheEvaluationsOfTraining(int servers) {
  const std::string followed = TestPath("followed.json");
  const std::string read = TestPath("read.json");
  const std::string directory = TestPath(absl::StrCat("checkpoints", servers));
  for (const std::string& path : {followed, read, directory}) std::filesystem::remove_all(path);
  std::string address;
  const auto serving = StartServers(servers, directory, &address);
  const auto evaluator = Start(EvaluateDlrm({"--server=" + address, "--json=" + followed}));
  const auto worker = Start(Train({"--server=" + address, "--model=dlrm", "--learning-rate=0.05",
                                   "--batch-size=256", "--max-steps=300"}));
  const std::vector<std::string> told = TestsOf(*worker);
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_THAT(evaluator->Wait(kJob), IsOkAndHolds(0)) << evaluator->output();
  for (const auto& server : serving) {
    EXPECT_THAT(server->Wait(kJob), IsOkAndHolds(0)) << server->output();
  }
  OutputOf(EvaluateDlrm({"--checkpoint-dir=" + directory, "--once", "--json=" + read}), 0);
  for (const std::string& path : {followed, read}) {
    const std::vector<Evaluated> evaluated = EvaluatedIn(path);
    ASSERT_FALSE(evaluated.empty()) << evaluator->output();
    EXPECT_EQ(evaluated.back().step, 300);
    EXPECT_EQ(evaluated.back().told, absl::StrCat(told[0], " ", told[1]));
  }
}

TEST(TableEvaluationTest, FollowsAServerAndItsCheckpointsToWhatTrainingMeasured) {
  ExpectTheEvaluationsOfTraining(1);
}

TEST(TableEvaluationTest, FollowsTwoServersAndTheirCheckpointsToWhatTrainingMeasured) {
  ExpectTheEvaluationsOfTraining(2);
}

TEST(TableEvaluationTest, RefusesAFileWithoutRows) {
  EXPECT_THAT(OutputOf(EvaluateDlrm({"--checkpoint=model.pt"}), 2),
              AllOf(HasSubstr("--checkpoint is not for models with tables"),
                    HasSubstr("--checkpoint-dir")));
}

TEST(TableModelsTest, RefusesFlagsThatAreNotForTables) {
  for (const std::string flag :
       {"--dataset=mnist", "--augment=crop", "--init-from=model.pt", "--local-steps=4"}) {
    const std::string output = OutputOf(Train({"--role=single", "--model=dlrm", flag}), 2);
    EXPECT_THAT(output, AllOf(HasSubstr("is not for models with tables"),
                              HasSubstr(flag.substr(0, flag.find('=')))));
    EXPECT_THAT(TestsIn(output), IsEmpty());
  }
  EXPECT_THAT(OutputOf(Train({"--role=single", "--model=dlrm", "--data-dir=/data"}), 2),
              HasSubstr("learns from data that it makes itself"));
  EXPECT_THAT(OutputOf(Train({"--role=single", "--model=wordnet", "--data-dir=/nowhere"}), 2),
              HasSubstr("cannot read /nowhere/data.noun: No such file or directory; the package "
                        "wordnet-base has it"));
}

}  // namespace
}  // namespace sluice
