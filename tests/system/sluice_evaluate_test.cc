// sluice_evaluate beside real servers and workers: what it reports, when it ends, and that nobody
// else notices. The data are easy (tests/testing/easy_data.h), the model is an MLP with BatchNorm.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/easy_data.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A line of --json; NaN where it has null.
struct Record {
  double step = 0;
  double incarnation = 0;
  double samples = 0;
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
};

std::vector<Record> ReadRecords(const std::string& path) {
  std::vector<Record> records;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    records.push_back({JsonNumberAt(line, "step"), JsonNumberAt(line, "incarnation"),
                       JsonNumberAt(line, "samples"), JsonNumberAt(line, "loss"),
                       JsonNumberAt(line, "top1"), JsonNumberAt(line, "top5")});
  }
  return records;
}

void ExpectSameFigures(const Record& a, const Record& b) {
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.top1, b.top1);
  EXPECT_EQ(a.top5, b.top5);
}

// Incarnations ascend, and steps ascend within an incarnation.
void ExpectInOrder(const std::vector<Record>& records, double every = 1) {
  for (size_t i = 1; i + 1 < records.size(); ++i) {
    const Record& before = records[i - 1];
    EXPECT_GE(records[i].incarnation, before.incarnation);
    if (records[i].incarnation == before.incarnation) {
      EXPECT_GE(records[i].step, before.step + every);
    }
  }
}

class SluiceEvaluateTest : public ::testing::Test {
 protected:
  Words Train(const Words& flags) const {
    return With({RunfilePath("worker/sluice_train"), "--model=mlp", "--progress=off",
                 "--epochs=1000", "--max-steps=20", "--data-dir=" + data_},
                flags);
  }

  Words Evaluate(const Words& flags) const {
    return With({RunfilePath("tools/evaluate/sluice_evaluate"), "--model=mlp",
                 "--data-dir=" + data_, "--json=" + json_},
                flags);
  }

  std::vector<Record> Records() const { return ReadRecords(json_); }

  // What an evaluation of that file alone says.
  Record FiguresOf(const std::string& file) const {
    const std::string json = TestPath("figures.json");
    std::filesystem::remove(json);
    OutputOf(Evaluate({"--checkpoint=" + file, "--json=" + json}), 0);
    const std::vector<Record> records = ReadRecords(json);
    EXPECT_THAT(records, SizeIs(1));
    return records.empty() ? Record() : records[0];
  }

  std::string FlagOf(const std::string& directory) const { return "--checkpoint-dir=" + directory; }

  // Trains until step `steps` with a server that keeps a checkpoint of the first and the last.
  void TrainInto(const std::string& directory, int steps) const {
    Standalone server({FlagOf(directory)});
    OutputOf(Train({server.flag(), absl::StrCat("--max-steps=", steps), "--no-test"}), 0);
    EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
  }

  // Makes `directory` one with the three newest checkpoints of two runs: the last of the first run,
  // and the first and the last of the second. The runs are made once, since a worker takes a second
  // to start.
  void CopyTwoRuns(const std::string& directory) const {
    static const std::string* const runs = [this] {
      const auto* const made = new std::string(::testing::TempDir() + "/two_runs");
      TrainInto(*made, 10);
      TrainInto(*made, 25);
      return made;
    }();
    std::filesystem::copy(*runs, directory, std::filesystem::copy_options::recursive);
  }

  const std::string data_ = WriteEasyData(TestPath("data"), 640, 100);
  const std::string json_ = TestPath("records.json");
};

// ---- Following a server ----

// Two workers whose every step waits for both.
class BesideTrainingTest : public SluiceEvaluateTest {
 protected:
  enum class Evaluator { kNone, kFirst };

  // Returns what the workers said. No step is made before the evaluator, if any, has joined.
  std::string TrainTogether(Standalone& server, Evaluator evaluator) const {
    const auto first = Start(Train({server.flag(), "--name=a"}));
    if (evaluator == Evaluator::kFirst) {
      EXPECT_THAT(WaitForObserver(server.address()), IsOk());
    }
    const auto second = Start(Train({server.flag(), "--name=b"}));
    EXPECT_THAT(first->Wait(kJob), IsOkAndHolds(0)) << first->output();
    EXPECT_THAT(second->Wait(kJob), IsOkAndHolds(0)) << second->output();
    return first->output() + second->output();
  }

  static std::string OutputOf(Standalone& server) {
    EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0)) << server.process().output();
    return server.process().output();
  }
};

TEST_F(BesideTrainingTest, ChangesNothingAndReportsTheLastStep) {
  Standalone alone({"--workers=2"});
  TrainTogether(alone, Evaluator::kNone);
  Standalone followed({"--workers=2"});
  const auto evaluator = Start(Evaluate({followed.flag()}));
  const std::string trained = TrainTogether(followed, Evaluator::kFirst);
  EXPECT_THAT(evaluator->Wait(kJob), IsOkAndHolds(0)) << evaluator->output();
  const std::string table = OutputOf(followed);
  EXPECT_EQ(Counters(table), "20 steps, 40 received: 40 accepted") << table;
  EXPECT_EQ(ClosingRows(table)["parameters' CRC-32"],
            ClosingRows(OutputOf(alone))["parameters' CRC-32"]);
  const std::vector<Record> records = Records();
  ASSERT_FALSE(records.empty());
  ExpectInOrder(records);
  EXPECT_EQ(records.back().step, 20);
  EXPECT_EQ(records.back().samples, 100);
  EXPECT_THAT(LinesWith(trained, "test accuracy"),
              ElementsAre(absl::StrFormat("test accuracy %.4f", records.back().top1)));
  EXPECT_THAT(LinesWith(evaluator->output(), "evaluations "), SizeIs(1)) << evaluator->output();
}

TEST_F(BesideTrainingTest, EvaluatesOnlyWhatIsFarEnoughAndTheLastStep) {
  Standalone server({"--workers=2"});
  const auto evaluator = Start(Evaluate({server.flag(), "--every=8"}));
  TrainTogether(server, Evaluator::kFirst);
  EXPECT_THAT(evaluator->Wait(kJob), IsOkAndHolds(0)) << evaluator->output();
  const std::vector<Record> records = Records();
  ASSERT_FALSE(records.empty());
  ExpectInOrder(records, 8);
  EXPECT_EQ(records.back().step, 20);
}

TEST_F(SluiceEvaluateTest, FollowsAServerThatIsKilledAndComesBack) {
  const Words flags = {absl::StrCat("--listen=127.0.0.1:", FreePort()), FlagOf(TestPath("kept")),
                       "--durability=journal", "--lease=600"};
  auto server = Start(ServerProgram(flags));
  const auto address = server->WaitForOutput("listening on (127.0.0.1:[0-9]+)");
  ASSERT_THAT(address, IsOk());
  const std::string flag = "--server=" + *address;
  const auto worker = Start(Train({flag, "--no-test", "--max-steps=0", "--until-step=300"}));
  const auto evaluator = Start(Evaluate({flag}));
  // The worker stands still for as long as the evaluator takes to come.
  ASSERT_THAT(WaitForAccepted(*address, 1), IsOk());
  worker->Signal(SIGSTOP);
  ASSERT_THAT(evaluator->WaitForOutput("^step [1-9]"), IsOk());
  server->Signal(SIGKILL);
  ASSERT_THAT(server->Wait(), IsOkAndHolds(-SIGKILL));
  worker->Signal(SIGCONT);
  server = Start(ServerProgram(flags));
  EXPECT_THAT(worker->Wait(kJob), IsOkAndHolds(0)) << worker->output();
  EXPECT_THAT(evaluator->Wait(kJob), IsOkAndHolds(0)) << evaluator->output();
  EXPECT_THAT(server->Wait(kJob), IsOkAndHolds(0)) << server->output();
  const std::vector<Record> records = Records();
  ASSERT_FALSE(records.empty());
  ExpectInOrder(records);
  EXPECT_EQ(records.front().incarnation, 1);
  EXPECT_EQ(records.back().incarnation, 2);
  EXPECT_EQ(records.back().step, 300);
}

TEST_F(SluiceEvaluateTest, EndsWithAServerThatDrains) {
  Standalone server({"--workers=2"});  // of which one never comes
  const auto worker = Start(Train({server.flag()}));
  const auto evaluator = Start(Evaluate({server.flag()}));
  ASSERT_THAT(evaluator->WaitForOutput("^step 0 "), IsOk());
  server.process().Signal(SIGTERM);
  EXPECT_THAT(evaluator->Wait(), IsOkAndHolds(0)) << evaluator->output();
  EXPECT_THAT(server.process().Wait(), IsOkAndHolds(0)) << server.process().output();
  EXPECT_THAT(LinesWith(evaluator->output(), "step 0  loss"), SizeIs(1));
}

TEST_F(SluiceEvaluateTest, SaysThatAServerIsGone) {
  Standalone server({"--workers=2"});
  const auto worker = Start(Train({server.flag()}));
  const auto evaluator = Start(Evaluate({server.flag(), "--connect-timeout=10"}));
  ASSERT_THAT(evaluator->WaitForOutput("^step 0 "), IsOk());
  server.process().Signal(SIGKILL);
  EXPECT_THAT(evaluator->Wait(), IsOkAndHolds(3)) << evaluator->output();
  EXPECT_THAT(evaluator->output(),
              HasSubstr(absl::StrCat("sluice_evaluate: lost the server at ", server.address(),
                                     ", and it did not come back within 10s")));
}

TEST_F(SluiceEvaluateTest, SaysThatThereIsNoServerOrNoWorker) {
  EXPECT_THAT(OutputOf(Evaluate({"--server=127.0.0.1:1", "--connect-timeout=0.5"}), 3),
              HasSubstr("no server at 127.0.0.1:1 within 500ms"));
  Standalone server({});
  EXPECT_THAT(OutputOf(Evaluate({server.flag(), "--connect-timeout=3"}), 3),
              HasSubstr("no worker joined the server within 3s"));
}

TEST_F(SluiceEvaluateTest, SaysHowToGiveTheTokenOfAJobOfMpirun) {
  const std::string file = TestPath("token");
  std::ofstream(file) << "secret\n";
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
  Standalone server({"--workers=2", "--token-file=" + file});
  EXPECT_THAT(OutputOf(Evaluate({server.flag(), "--connect-timeout=3"}), 1),
              HasSubstr("sluice_evaluate: the call has no job token; start the caller with this "
                        "job's token: --token-file=FILE here, with the file that the server was "
                        "started with; a job of mpirun has a random token, which no file has, "
                        "unless it was started with --token-file=FILE, too\n"));
  EXPECT_THAT(OutputOf(Evaluate({server.flag(), "--connect-timeout=3", "--token-file=" + file}), 3),
              HasSubstr("no worker joined the server within 3s"));
}

TEST_F(SluiceEvaluateTest, TellsThatTheServerTrainsAnotherModel) {
  Standalone server({"--workers=2"});
  const auto worker = Start(Train({server.flag()}));
  EXPECT_THAT(OutputOf(Evaluate({server.flag(), "--model=lenet"}), 1), HasSubstr("conv1.weight"));
}

// ---- Who may ----

TEST_F(SluiceEvaluateTest, AnObserversCertificateIsEnoughAndAStrangersIsNot) {
  const TestAuthority authority;
  const TestAuthority other;
  Standalone server(
      With(TlsFlags(WriteCredentials(authority.Server(), TestPath("server"))), {"--workers=2"}));
  const auto flags = [&](const Credentials& credentials, const std::string& folder) {
    return With(TlsFlags(WriteCredentials(credentials, TestPath(folder))),
                {server.flag(), "--connect-timeout=10"});
  };
  const auto worker = Start(Train(flags(authority.Client({Role::kWorker}), "worker")));
  const auto observer = Start(Evaluate(flags(authority.Client({Role::kObserver}), "observer")));
  EXPECT_THAT(observer->WaitForOutput("^step 0 "), IsOk());
  EXPECT_THAT(OutputOf(Evaluate(flags(authority.Client({Role::kAdmin}), "admin")), 1),
              HasSubstr("needs the role worker or observer"));
  EXPECT_THAT(OutputOf(Evaluate(flags(other.Client({Role::kObserver}), "stranger")), 3),
              HasSubstr("do both sides trust each other's certificates?"));
  server.process().Signal(SIGTERM);
  EXPECT_THAT(observer->Wait(), IsOkAndHolds(0)) << observer->output();
}

// ---- Following a directory ----

TEST_F(SluiceEvaluateTest, FollowsADirectoryOfWhichOneCheckpointIsKept) {
  const std::string directory = TestPath("kept");
  const auto evaluator = Start(Evaluate({FlagOf(directory), "--poll-interval=0.01"}));
  Standalone server({FlagOf(directory), "--checkpoint-every=10", "--keep-checkpoints=1"});
  OutputOf(Train({server.flag(), "--no-test", "--max-steps=205"}), 0);
  EXPECT_THAT(server.process().Wait(kJob), IsOkAndHolds(0));
  EXPECT_THAT(evaluator->Wait(kJob), IsOkAndHolds(0)) << evaluator->output();
  const std::vector<Record> records = Records();
  ASSERT_FALSE(records.empty());
  ExpectInOrder(records);
  EXPECT_EQ(records.back().step, 205);
}

TEST_F(SluiceEvaluateTest, EvaluatesEachCheckpointOfARunThatIsOver) {
  const std::string directory = TestPath("kept");
  CopyTwoRuns(directory);
  const std::string output = OutputOf(Evaluate({FlagOf(directory)}), 0);
  const std::vector<Record> records = Records();
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[0].step, 10);
  EXPECT_EQ(records[0].incarnation, 1);
  EXPECT_EQ(records[1].step, 10);
  EXPECT_EQ(records[1].incarnation, 2);
  EXPECT_EQ(records[2].step, 25);
  EXPECT_EQ(records[2].incarnation, 2);
  EXPECT_THAT(output, HasSubstr("evaluations 3, the best at step "));
}

TEST_F(SluiceEvaluateTest, ReadsTheDirectoriesOfSeveralServers) {
  const std::string first = TestPath("first");
  const std::string second = TestPath("second");
  const auto job = Mpirun({{3, Train({"--servers=2", "--no-test", FlagOf(first)})}});
  ASSERT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  std::filesystem::create_directories(second);
  for (const auto& file : std::filesystem::directory_iterator(first)) {
    const std::filesystem::path name = file.path().filename();
    if (absl::StrContains(name.string(), "-1-of-2")) {
      std::filesystem::rename(file.path(), std::filesystem::path(second) / name);
    }
  }
  EXPECT_THAT(OutputOf(Evaluate({FlagOf(first), "--once"}), 1),
              AllOf(HasSubstr("is missing: it is the part of server 1 of 2"),
                    HasSubstr("there was nothing to evaluate")));
  OutputOf(Evaluate({FlagOf(absl::StrCat(first, ",", second))}), 0);
  const std::vector<Record> records = Records();
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[0].step, 0);
  EXPECT_EQ(records[1].step, 20);
}

TEST_F(SluiceEvaluateTest, PassesOverADamagedCheckpoint) {
  const std::string directory = TestPath("kept");
  CopyTwoRuns(directory);
  const std::string newest = directory + "/checkpoint-000002-000000000025.safetensors";
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) - 1);
  const auto says_so = HasSubstr(absl::StrCat(newest, ": "));
  EXPECT_THAT(OutputOf(Evaluate({FlagOf(directory), "--once"}), 0),
              AllOf(says_so, HasSubstr("it is skipped"), HasSubstr("evaluations 2")));
  EXPECT_EQ(Records().back().step, 10);
  // Whether training had ended is in that one alone.
  EXPECT_THAT(
      OutputOf(Evaluate({FlagOf(directory), "--poll-interval=0.01", "--connect-timeout=0.2"}), 3),
      AllOf(says_so, HasSubstr("does not say that training had ended")));
}

TEST_F(SluiceEvaluateTest, SaysThatADirectoryHoldsNothing) {
  EXPECT_THAT(OutputOf(Evaluate({FlagOf("/nowhere"), "--once"}), 1),
              HasSubstr("there was nothing to evaluate"));
}

// ---- Files ----

TEST_F(SluiceEvaluateTest, GivesTheSameFiguresOfACheckpointAndItsExport) {
  const std::string directory = TestPath("kept");
  CopyTwoRuns(directory);
  OutputOf(Evaluate({FlagOf(directory)}), 0);
  const Record followed = Records().back();
  EXPECT_EQ(followed.step, 25);
  const std::string file = directory + "/checkpoint-000002-000000000025.safetensors";
  const Record of_file = FiguresOf(file);
  EXPECT_EQ(of_file.step, 25);
  EXPECT_EQ(of_file.incarnation, 2);
  ExpectSameFigures(of_file, followed);
  const std::string exported = TestPath("model.pt");
  const std::string said =
      OutputOf({RunfilePath("tools/ctl/sluicectl"), "checkpoint", "export", file, exported}, 0);
  EXPECT_THAT(said, ::testing::ContainsRegex(
                        absl::StrCat("wrote ", exported, ": [0-9]+ tensors, [0-9.]+ kB\n")));
  ExpectSameFigures(FiguresOf(exported), followed);
}

TEST_F(SluiceEvaluateTest, NamesAFileThatIsDamagedOrMissing) {
  const std::string directory = TestPath("kept");
  CopyTwoRuns(directory);
  const std::string file = directory + "/checkpoint-000002-000000000025.safetensors";
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-100, std::ios::end)
      << "damage";
  EXPECT_THAT(OutputOf(Evaluate({"--checkpoint=" + file}), 1),
              HasSubstr(file + ": its checksum does not match"));
  EXPECT_THAT(OutputOf(Evaluate({"--checkpoint=/nowhere.pt"}), 1), HasSubstr("/nowhere.pt"));
}

// ---- Command lines ----

TEST_F(SluiceEvaluateTest, ChecksItsCommandLine) {
  EXPECT_THAT(OutputOf(Evaluate({}), 2), HasSubstr("found 0 of --server"));
  EXPECT_THAT(OutputOf(Evaluate({"--checkpoint=a", "--server=b:1"}), 2),
              HasSubstr("found 2 of --server"));
  EXPECT_THAT(OutputOf(Evaluate({"--checkpoint=a", "--once"}), 2), HasSubstr("--checkpoint-dir"));
  EXPECT_THAT(OutputOf(Evaluate({"--checkpoint=a", "--every=0"}), 2), HasSubstr("--every"));
  EXPECT_THAT(OutputOf(Evaluate({"--server=192.0.2.1:7070"}), 2),
              HasSubstr("--insecure-on-network"));
  EXPECT_THAT(OutputOf(Evaluate({"--checkpoint=a", "--data-dir=/nowhere"}), 1),
              HasSubstr("/nowhere/t10k-images-idx3-ubyte"));
  EXPECT_THAT(OutputOf(Evaluate({"--checkpoint=a", "--json=/nowhere/x"}), 1),
              HasSubstr("cannot write /nowhere/x"));
  EXPECT_THAT(OutputOf(Evaluate({"--help"}), 0),
              AllOf(HasSubstr("--checkpoint-dir"), HasSubstr("Exit codes: 0 done"),
                    Not(HasSubstr("--push-encoding"))));
}

}  // namespace
}  // namespace sluice
