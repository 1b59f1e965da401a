// Several servers train to the same bits as one. An evaluator beside the training pulls from all of
// them, and its figures of the last step tell the parameters.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/easy_data.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Processes = std::vector<std::unique_ptr<Process>>;

std::string LastLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

class ServersBitsTest : public ::testing::Test {
 protected:
  // Returns what the evaluator finds at the last step, to all digits.
  std::string LastEvaluation(int servers, const Words& flags,
                             const Words& server_flags = {}) const {
    std::vector<std::string> addresses;
    for (int i = 0; i < servers; ++i) addresses.push_back(absl::StrCat("127.0.0.1:", FreePort()));
    const Processes serving = StartServers(addresses, server_flags);
    Processes working;
    for (const char* name : {"a", "b"}) working.push_back(StartWorker(addresses[0], name, flags));
    const std::string json = TestPath(absl::StrCat("records", ++evaluations_, ".json"));
    working.push_back(
        Start({RunfilePath("tools/evaluate/sluice_evaluate"), "--server=" + addresses[0],
               "--model=mlp", "--data-dir=" + data_, "--json=" + json}));
    // The first step waits for the third worker.
    EXPECT_THAT(WaitForObserver(addresses[0]), IsOk());
    working.push_back(StartWorker(addresses[0], "c", flags));
    ExpectEnd(working);
    ExpectEnd(serving);
    EXPECT_EQ(Counters(serving[0]->output()), "12 steps, 36 received: 36 accepted");
    const std::string record = LastLineOf(json);
    return absl::StrFormat("step %g: loss %.17g, top-1 %.17g", JsonNumberAt(record, "step"),
                           JsonNumberAt(record, "loss"), JsonNumberAt(record, "top1"));
  }

 private:
  static void ExpectEnd(const Processes& processes) {
    for (const auto& process : processes) {
      EXPECT_THAT(process->Wait(kJob), IsOkAndHolds(0)) << process->output();
    }
  }

  static Processes StartServers(const std::vector<std::string>& addresses, const Words& flags) {
    Processes serving;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Words place =
          addresses.size() == 1
              ? Words{"--listen=" + addresses[0]}
              : Words{"--servers=" + absl::StrJoin(addresses, ","), absl::StrCat("--index=", i)};
      serving.push_back(Start(ServerProgram(With(With(place, {"--workers=3"}), flags))));
      EXPECT_THAT(serving.back()->WaitForOutput("listening on " + addresses[i]), IsOk());
    }
    return serving;
  }

  std::unique_ptr<Process> StartWorker(const std::string& server, const std::string& name,
                                       const Words& flags) const {
    return Start(With({RunfilePath("worker/sluice_train"), "--server=" + server, "--name=" + name,
                       "--model=mlp", "--max-steps=12", "--epochs=1000", "--batch-size=16",
                       "--seed=7", "--progress=off", "--no-test", "--data-dir=" + data_},
                      flags));
  }

  const std::string data_ = WriteEasyData(TestPath("data"), 640, 100);
  mutable int evaluations_ = 0;
};

TEST_F(ServersBitsTest, OfSgdWithMomentumAreThoseOfOneServer) {
  const std::string alone = LastEvaluation(1, {"--momentum=0.9"});
  EXPECT_THAT(alone, AllOf(HasSubstr("step 12: loss "), Not(HasSubstr("nan"))));
  EXPECT_EQ(LastEvaluation(2, {"--momentum=0.9", "--overlap"}), alone);
  EXPECT_EQ(LastEvaluation(5, {"--momentum=0.9"}), alone);
}

TEST_F(ServersBitsTest, OfOptimizersThatNeedNormsAreThoseOfOneServer) {
  const Words lamb = {"--optimizer=lamb", "--learning-rate=0.01"};
  const std::string alone = LastEvaluation(1, lamb, {"--clip-norm=0.5"});
  EXPECT_EQ(LastEvaluation(3, With(lamb, {"--overlap"}), {"--clip-norm=0.5"}), alone);
  EXPECT_NE(LastEvaluation(2, lamb, {"--clip-norm=0.01"}), alone);
}

}  // namespace
}  // namespace sluice
