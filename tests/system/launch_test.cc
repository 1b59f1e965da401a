// The programs as a user starts them: under mpirun, by hand, wrongly.
//
// Training data are so easy (tests/testing/easy_data.h) that an MLP tells all of the test set apart
// after 20 steps.

#include "tests/testing/process/launch.h"

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/easy_data.h"
#include "tests/testing/process/mpi_environment.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint32_t kTrainingImages = 20 * 3 * 32;  // 20 steps of three workers
constexpr uint32_t kTestImages = 100;

// ---- Files ----

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string WriteData() { return WriteEasyData(TestPath("data"), kTrainingImages, kTestImages); }

// ---- Programs ----

// 20 steps, unless `flags` say otherwise.
Words Train(const std::string& data, const Words& flags = {}) {
  return With({RunfilePath("worker/sluice_train"), "--model=mlp", "--progress=off",
               "--max-steps=20", "--data-dir=" + data},
              flags);
}

// A worker without LibTorch, which takes a second to load. It makes 20 steps.
Words Push(const Words& flags = {}) {
  return With(
      {RunfilePath("tests/testing/process/pushing_worker_program"), "--steps=20", "--gradient=1"},
      flags);
}

// Runs a job under mpirun that has to fail, and gives what it said.
std::string FailingMpirun(const std::vector<Ranks>& parts) {
  const auto job = Mpirun(parts);
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(Ne(0))) << job->output();
  return job->output();
}

void ExpectTrained(Process& process) {
  EXPECT_THAT(process.Wait(kJob), IsOkAndHolds(0)) << process.output();
}

// ---- Under mpirun ----

class MpirunTest : public ::testing::Test {
 protected:
  // Runs a job to its good end, and gives what it said.
  std::string Mpirun(const std::vector<Ranks>& parts) {
    const auto job = sluice::Mpirun(parts);
    ExpectTrained(*job);
    return job->output();
  }

  const std::string data_ = WriteData();
};

TEST_F(MpirunTest, AServerAndThreeWorkersMeetOnAPrivateSocketTrainAndEndByThemselves) {
  const auto job = sluice::Mpirun({{1, ServerProgram()}, {3, Train(data_)}});
  const auto socket = job->WaitForOutput("listening on unix:(/.*)$");
  ASSERT_THAT(socket, IsOk());
  const std::string directory = std::filesystem::path(*socket).parent_path();
  struct stat info = {};
  ASSERT_EQ(stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  ExpectTrained(*job);
  EXPECT_FALSE(std::filesystem::exists(directory));
  const std::string& output = job->output();
  EXPECT_EQ(Counters(output), "20 steps, 60 received: 60 accepted") << output;
  EXPECT_THAT(LinesWith(output, "test accuracy"), Contains("test accuracy 1.0000")) << output;
  EXPECT_THAT(ClosingRows(output), Contains(Pair("test accuracy", "1.0000"))) << output;
}

TEST_F(MpirunTest, TrainsOnTheInstalledDataWithoutFurtherFlags) {
  const std::string output =
      Mpirun({{2, {RunfilePath("worker/sluice_train"), "--max-steps=2", "--progress=plain"}}});
  EXPECT_EQ(Counters(output), "2 steps, 2 received: 2 accepted") << output;
  EXPECT_THAT(LinesWith(output, "epoch 1  step 2  loss "), SizeIs(1)) << output;
}

TEST_F(MpirunTest, SaysNotHowFarItIsWithQuiet) {
  const std::string output = Mpirun(
      {{2, {RunfilePath("worker/sluice_train"), "--max-steps=2", "--progress=plain", "--quiet"}}});
  EXPECT_EQ(Counters(output), "2 steps, 2 received: 2 accepted") << output;
  EXPECT_THAT(LinesWith(output, "epoch 1"), SizeIs(0)) << output;
}

TEST_F(MpirunTest, AsynchronousWorkersMakeAStepOfEachGradient) {
  const std::string output = Mpirun({{1, ServerProgram({"--mode=async"})}, {3, Train(data_)}});
  EXPECT_EQ(Counters(output), "60 steps, 60 received: 60 accepted") << output;
}

TEST_F(MpirunTest, EveryModeStartsWithNothingButItsNameAndSaysWhatItTook) {
  const std::pair<const char*, const char*> modes[] = {
      {"backup", "mode backup, quorum 1;"},
      {"bounded", "mode bounded, quorum 1, max_staleness 4;"},
      {"ssp", "mode ssp, slack 3;"},
      {"async", "mode async, quorum 1;"}};
  for (const auto& [mode, says] : modes) {
    const std::string output = Mpirun({{3, Push({absl::StrCat("--mode=", mode)})}});
    EXPECT_THAT(output, HasSubstr(absl::StrCat(says, " the first step waits for 2 workers")));
  }
}

TEST_F(MpirunTest, OneProgramIsServerAndWorkersAlsoWithGradientsThatLeaveDuringBackward) {
  std::map<std::string, std::string> rows[2];
  for (const bool overlap : {false, true}) {
    const std::string output = Mpirun({{4, Train(data_, overlap ? Words{"--overlap"} : Words())}});
    EXPECT_EQ(Counters(output), "20 steps, 60 received: 60 accepted") << output;
    rows[overlap] = ClosingRows(output);
    EXPECT_THAT(rows[overlap], Contains(Pair("test accuracy", "1.0000"))) << output;
  }
  EXPECT_EQ(rows[true]["parameters' CRC-32"], rows[false]["parameters' CRC-32"]);
}

TEST_F(MpirunTest, RefusesToOverlapLocalSteps) {
  EXPECT_THAT(FailingMpirun({{2, Train(data_, {"--overlap", "--local-steps=2"})}}),
              HasSubstr("local steps push no gradients"));
}

TEST_F(MpirunTest, MeetsOnTcpIfToldTo) {
  const std::string output = Mpirun({{1, ServerProgram({"--listen=127.0.0.1:0"})}, {3, Push()}});
  EXPECT_THAT(LinesWith(output, "listening on 127.0.0.1:"), SizeIs(1)) << output;
  EXPECT_EQ(Counters(output), "20 steps, 60 received: 60 accepted") << output;
}

// Whoever knows the address has no certificate of this launch.
TEST_F(MpirunTest, ShutsStrangersOutOfTcpAtTheHandshake) {
  const auto job =
      sluice::Mpirun({{1, ServerProgram({"--listen=127.0.0.1:0", "--wait-for-more"})}, {3, Push()}},
                     RankDeath::kEndsTheJob, PatientMpi());
  const auto address = job->WaitForOutput("listening on (127.0.0.1:[0-9]+)");
  ASSERT_THAT(address, IsOk());
  const Words stranger = {"--server=" + *address, "--connect-timeout=1"};
  EXPECT_THAT(OutputOf(Push(stranger), 3), HasSubstr("no server at " + *address));
  const TestAuthority other;
  Words foreign = TlsFlags(WriteCredentials(other.Client({Role::kWorker}), TestPath("foreign")));
  foreign.insert(foreign.end(), stranger.begin(), stranger.end());
  EXPECT_THAT(OutputOf(Push(foreign), 3),
              HasSubstr("do both sides trust each other's certificates?"));
  EXPECT_THAT(job->WaitForOutput("parameters at step 20"), IsOk());
  job->Signal(SIGTERM);  // which mpirun hands to the server
  EXPECT_THAT(job->Wait(kJob), IsOk());
  EXPECT_EQ(Counters(job->output()), "20 steps, 60 received: 60 accepted") << job->output();
  EXPECT_THAT(LinesWith(job->output(), "PRIVATE KEY"), ElementsAre());
}

TEST_F(MpirunTest, TrainsAProgramOfOnesOwn) {
  const std::string output = Mpirun({{3, {RunfilePath("worker/torch/examples/example")}}});
  EXPECT_EQ(Counters(output), "300 steps, 600 received: 600 accepted") << output;
  EXPECT_THAT(LinesWith(output, "batch 300: loss "), SizeIs(1)) << output;
}

TEST_F(MpirunTest, OneRankSaysWhatIsWrongWithTheCommandLineOfAll) {
  const std::pair<Words, const char*> wrong[] = {
      {{"--bogus"}, "--bogus is not a flag"},
      {{"--push-encoding=nonsense"}, "no transform \"nonsense\""},
      {{"--mode=bounded", "--quorum=0"}, "quorum is 0"}};
  for (const auto& [flags, says] : wrong) {
    const auto job = sluice::Mpirun({{3, Train(data_, flags)}});
    EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(2)) << job->output();
    EXPECT_THAT(LinesWith(job->output(), says), SizeIs(1)) << job->output();
    EXPECT_THAT(LinesWith(job->output(), "the job ends for this reason"), SizeIs(1))
        << job->output();
  }
}

TEST_F(MpirunTest, OneRankSaysWhatIsWrongWithTheCommandLineOfAProgramOfOnesOwn) {
  const auto job =
      sluice::Mpirun({{3, {RunfilePath("worker/torch/examples/example"), "--sluice-lease=bogus"}}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(2)) << job->output();
  EXPECT_THAT(LinesWith(job->output(), "--sluice-lease"), SizeIs(1)) << job->output();
}

// Its first argument is a learning rate. Rank 0 serves, and worker 0 tells of the last flag.
TEST_F(MpirunTest, AProgramOfOnesOwnKeepsTheFlagsThatHaveNoPrefix) {
  const auto job =
      sluice::Mpirun({{3,
                       {RunfilePath("worker/torch/examples/example"), "--sluice-mode=async", "0.1",
                        "--mode=sync", "--workers=9", "--max-staleness=3"}}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
  EXPECT_EQ(Counters(job->output()), "600 steps, 600 received: 600 accepted") << job->output();
  EXPECT_THAT(
      LinesWith(job->output(), " is not taken: write "),
      ElementsAre(HasSubstr("] --max-staleness is not taken: write --sluice-max-staleness")))
      << job->output();
}

TEST_F(MpirunTest, OneRankPrintsTheHelp) {
  EXPECT_THAT(LinesWith(Mpirun({{3, Train(data_, {"--help"})}}), "Usage: sluice_train"), SizeIs(1));
}

TEST_F(MpirunTest, SeveralServersTrainWithInconsistentReads) {
  const auto job =
      sluice::Mpirun({{4, Push({"--servers=2", "--mode=async", "--inconsistent-reads"})}});
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(0)) << job->output();
}

TEST_F(MpirunTest, RefusesSeveralServersThatAreNotTheFirstRanks) {
  EXPECT_THAT(FailingMpirun({{2, ServerProgram()}, {1, Push()}}),
              HasSubstr("sluice_server is not rank 0; name it first"));
  EXPECT_THAT(
      FailingMpirun({{3, ServerProgram({"--servers=2"})}, {1, Push()}}),
      HasSubstr("sluice_server is rank 2, and --servers=2 are the ranks 0 to 1; name it first: "
                "mpirun -n 2 sluice_server --servers=2 : -n 3 my_program"));
  EXPECT_THAT(
      FailingMpirun({{1, ServerProgram()}, {1, ServerProgram({"--servers=2"})}, {1, Push()}}),
      HasSubstr("sluice_server is rank 1 and has --servers=2, but rank 0 has --servers=1"));
}

TEST_F(MpirunTest, RefusesAServerThatIsNotNamedFirst) {
  EXPECT_THAT(FailingMpirun({{1, Push()}, {1, ServerProgram()}}),
              HasSubstr("sluice_server is not rank 0; name it first"));
}

TEST_F(MpirunTest, RefusesAServerWithoutWorkers) {
  EXPECT_THAT(FailingMpirun({{1, ServerProgram()}}), HasSubstr("start at least 2 ranks"));
}

TEST_F(MpirunTest, SaysOnceWhyTheServerCannotStart) {
  const std::string output =
      FailingMpirun({{1, ServerProgram({"--listen=192.0.2.1:7070"})}, {2, Push()}});
  EXPECT_THAT(LinesWith(output, "cannot listen on 192.0.2.1:7070"), SizeIs(1)) << output;
}

TEST_F(MpirunTest, EndsAsAWholeIfThereAreNoData) {
  EXPECT_THAT(FailingMpirun({{3, Train("/nonexistent")}}),
              HasSubstr("/nonexistent/t10k-images-idx3-ubyte"));
}

TEST_F(MpirunTest, EndsAsAWholeIfTheTrainingDataAreCutOff) {
  const std::string path = data_ + "/train-images-idx3-ubyte";
  std::filesystem::resize_file(path, 100000);
  EXPECT_THAT(FailingMpirun({{3, Train(data_)}}), HasSubstr(path));
}

// ---- Without MPI ----

class StandaloneTest : public ::testing::Test {
 protected:
  // A file that holds the job's token.
  static std::string TokenFile(const std::string& name, const std::string& token, mode_t mode) {
    std::string path = TestPath(name);
    WriteFile(path, token + "\n");
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  const std::string data_ = WriteData();
};

TEST_F(StandaloneTest, AServerAndTwoWorkersTrainAndEndByThemselves) {
  Standalone server({"--workers=2"});
  const auto first = Start(Train(data_, {server.flag()}));
  const auto second = Start(Train(data_, {server.flag()}));
  ExpectTrained(*first);
  ExpectTrained(*second);
  ExpectTrained(server.process());
  EXPECT_EQ(Counters(server.process().output()), "20 steps, 40 received: 40 accepted");
  EXPECT_THAT(LinesWith(first->output() + second->output(), "test accuracy"),
              ElementsAre("test accuracy 1.0000"));
}

TEST_F(StandaloneTest, WorkersWaitForAServerThatComesLater) {
  const std::string address = absl::StrCat("127.0.0.1:", FreePort());
  const auto first = Start(Push({"--server=" + address}));
  const auto second = Start(Push({"--server=" + address}));
  const std::string waiting = "waiting up to 1m for a server at " + address;
  EXPECT_THAT(first->WaitForOutput(waiting), IsOk());
  EXPECT_THAT(second->WaitForOutput(waiting), IsOk());
  const auto server = Start(ServerProgram({"--workers=2", "--listen=" + address}));
  ExpectTrained(*first);
  ExpectTrained(*second);
  ExpectTrained(*server);
  EXPECT_EQ(Counters(server->output()), "20 steps, 40 received: 40 accepted");
}

TEST_F(StandaloneTest, OneProcessTrainsAlone) {
  EXPECT_EQ(OutputOf(Train(data_, {"--role=single"}), 0), "test accuracy 1.0000\n");
}

TEST_F(StandaloneTest, ASecondServerOnAPortIsRefused) {
  const Standalone server({});
  EXPECT_THAT(OutputOf(ServerProgram({"--listen=" + server.address()}), 1),
              HasSubstr(absl::StrCat("cannot listen on ", server.address())));
}

TEST_F(StandaloneTest, ATerminatedServerDrainsAndTellsAWorkerThatWaits) {
  Standalone server({"--workers=2"});
  const auto worker = Start(Train(data_, {server.flag()}));
  ASSERT_THAT(WaitForAccepted(server.address(), 1), IsOk());
  server.process().Signal(SIGTERM);
  EXPECT_THAT(server.process().Wait(), IsOkAndHolds(0)) << server.process().output();
  EXPECT_EQ(Counters(server.process().output()), "0 steps, 1 received: 1 accepted");
  EXPECT_THAT(worker->Wait(), IsOkAndHolds(3));
  EXPECT_THAT(LinesWith(worker->output(), "sluice_train: "),
              ElementsAre("sluice_train: the server is draining; it takes no more work"));
}

TEST_F(StandaloneTest, AWorkerThatLosesItsServerAtWorkSaysSo) {
  Standalone server({});
  const auto worker = Start(
      Train(data_, {server.flag(), "--max-steps=0", "--epochs=1000000", "--connect-timeout=10"}));
  ASSERT_THAT(WaitForAccepted(server.address(), 2), IsOk());
  server.process().Signal(SIGKILL);
  EXPECT_THAT(worker->Wait(), IsOkAndHolds(3));
  EXPECT_THAT(LinesWith(worker->output(),
                        absl::StrCat("sluice_train: lost the server at ", server.address(),
                                     ", and it did not come back within 10s: ")),
              SizeIs(1));
}

TEST_F(StandaloneTest, OnlyAWorkerWithTheTokenIsLetIn) {
  Standalone server({"--token-file=" + TokenFile("server", "open sesame", 0600)});
  EXPECT_THAT(OutputOf(Push({server.flag()}), 1), HasSubstr("token"));
  const std::string wrong = TokenFile("wrong", "open barley", 0600);
  EXPECT_THAT(OutputOf(Push({server.flag(), "--token-file=" + wrong}), 1), HasSubstr("token"));
  const std::string right = TokenFile("right", "open sesame", 0600);
  OutputOf(Push({server.flag(), "--token-file=" + right}), 0);
  ExpectTrained(server.process());
  EXPECT_EQ(Counters(server.process().output()), "20 steps, 20 received: 20 accepted");
}

TEST_F(StandaloneTest, ATokenThatOthersMayReadIsRefused) {
  const std::string path = TokenFile("shown", "open sesame", 0644);
  const std::string flag = "--token-file=" + path;
  const auto says_so = HasSubstr(path + " can be read by other users; run chmod 600");
  EXPECT_THAT(OutputOf(ServerProgram({"--listen=127.0.0.1:0", flag}), 1), says_so);
  EXPECT_THAT(OutputOf(Push({"--server=127.0.0.1:1", flag}), 1), says_so);
}

TEST_F(StandaloneTest, ServerAndWorkersMeetOverTls) {
  const TestAuthority authority;
  Standalone server(TlsFlags(WriteCredentials(authority.Server(), TestPath("server"))));
  EXPECT_THAT(OutputOf(Push({server.flag(), "--connect-timeout=5"}), 3),
              HasSubstr("do both sides speak plaintext?"));
  const auto flags = [&](Role role, const std::string& folder) {
    return With(TlsFlags(WriteCredentials(authority.Client({role}), TestPath(folder))),
                {server.flag()});
  };
  EXPECT_THAT(OutputOf(Push(flags(Role::kObserver, "observer")), 1),
              HasSubstr("the caller's certificate does not have the role worker"));
  EXPECT_THAT(LinesWith(OutputOf(Train(data_, flags(Role::kWorker, "worker")), 0), "test accuracy"),
              ElementsAre("test accuracy 1.0000"));
  ExpectTrained(server.process());
  EXPECT_EQ(Counters(server.process().output()), "20 steps, 20 received: 20 accepted");
}

TEST_F(StandaloneTest, RefusesPlaintextThatTheNetworkCouldRead) {
  EXPECT_THAT(OutputOf(ServerProgram({"--listen=0.0.0.0:0"}), 2),
              HasSubstr("--insecure-on-network"));
  EXPECT_THAT(OutputOf(Push({"--server=192.0.2.1:7070"}), 2),
              HasSubstr("in plaintext at 192.0.2.1:7070 the network could read"));
}

TEST_F(StandaloneTest, RefusesEncodingsThatCannotBeMeant) {
  const std::pair<Words, const char*> refused[] = {
      {{"--pull-encoding=top-k:0.1"}, "parameters that are not sent would be 0"},
      {{"--pull-encoding=sign:momentum"}, "parameters have no momentum"},
      {{"--pull-encoding=none,fc=int8"}, "all parameters are pulled in one encoding"},
      {{"--push-encoding=sign:momentum", "--no-error-feedback"}, "needs error feedback"},
      {{"--push-encoding=int8/zstd/pdict"}, "--push-encoding"}};
  for (const auto& [flags, says] : refused) {
    EXPECT_THAT(OutputOf(With(Push({"--server=127.0.0.1:1"}), flags), 2), HasSubstr(says));
  }
}

TEST_F(StandaloneTest, AWorkerRefusesFlagsOfAServerThatRunsElsewhere) {
  const std::string elsewhere = "--server=127.0.0.1:1";
  EXPECT_THAT(
      OutputOf(Train(data_, {"--mode", "ssp", elsewhere}), 2),
      HasSubstr("flags of the server, which runs elsewhere (--server=127.0.0.1:1), were given "
                "here: --mode; leave them out, and give them to sluice_server\n"));
  EXPECT_THAT(OutputOf({RunfilePath("worker/torch/examples/example"), "--sluice-server=127.0.0.1:1",
                        "--sluice-slack=3", "--sluice-lease=9"},
                       2),
              HasSubstr("were given here: --sluice-lease, --sluice-slack; leave them out"));
}

TEST_F(StandaloneTest, AWorkerIgnoresFlagsOfAServerInTheEnvironmentAndInFiles) {
  const std::string file = TestPath("flags.json");
  std::ofstream(file) << R"({"lease": 20})";
  const auto worker = Process::Start(
      Train(data_, {"--server=127.0.0.1:1", "--connect-timeout=0", "--config=" + file,
                    "--trace=" + TestPath("trace"), "--insecure"}),
      {{"SLUICE_MODE", "ssp"}});
  ASSERT_THAT(worker, IsOk());
  EXPECT_THAT((*worker)->Wait(kJob), IsOkAndHolds(3)) << (*worker)->output();
}

TEST_F(StandaloneTest, AWorkerGivesUpOnAServerThatIsNotThere) {
  EXPECT_THAT(OutputOf(Train(data_, {"--server=127.0.0.1:1", "--connect-timeout=5"}), 3),
              AllOf(HasSubstr("sluice_train: no server at 127.0.0.1:1 within 5s"),
                    HasSubstr("Connection refused")));
}

TEST_F(StandaloneTest, DataThatAreMissingAreNamed) {
  EXPECT_THAT(OutputOf(Train("/nonexistent", {"--role=single"}), 1),
              HasSubstr("neither /nonexistent/t10k-images-idx3-ubyte nor"));
}

TEST_F(StandaloneTest, DataThatAreCutOffAreNamed) {
  for (const std::string name : {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const std::string path = absl::StrCat(data_, "/", name);
    std::filesystem::resize_file(path, 50);
    EXPECT_THAT(OutputOf(Train(data_, {"--role=single"}), 1), HasSubstr(path));
  }
}

// ---- Names and numbers of a launch ----

TEST(LaunchedNamesTest, OneNameOrAnotherNumberOfWorkersForAllIsAnErrorAtOnce) {
  for (const auto& [flag, why] :
       {std::make_pair("--name=x", "--name: ranks 1 and 2 are both named \"x\""),
        std::make_pair("--workers=4", "--workers=4, but mpirun has launched 2 workers")}) {
    for (const Words& more : {Words(), Words({"--max-restarts=1"})}) {
      Words flags = {flag};
      flags.insert(flags.end(), more.begin(), more.end());
      const auto job = Mpirun({{3, Push(flags)}});
      EXPECT_THAT(job->Wait(), IsOkAndHolds(2)) << job->output();
      EXPECT_THAT(LinesWith(job->output(), why), SizeIs(1)) << job->output();
    }
  }
}

// ---- Command lines ----

TEST(CommandLineTest, OfTheServerIsPrintedIfAsked) {
  const std::string config = OutputOf(ServerProgram({"--print-options", "--mode=async"}), 0);
  EXPECT_THAT(LinesWith(config, "\"mode\""), ElementsAre("  \"mode\": \"ASYNC\","));
  EXPECT_THAT(
      LinesWith(OutputOf(ServerProgram({"--print-options", "--mode=bounded", "--workers=3"}), 0),
                "\"max_staleness\": 6"),
      SizeIs(1));
  EXPECT_THAT(OutputOf(ServerProgram({"--print-options", "--mode=bogus"}), 2),
              HasSubstr("\"bogus\""));
}

TEST(CommandLineTest, OfTheServerIsCheckedBeforeItStarts) {
  EXPECT_THAT(OutputOf(ServerProgram({"--bogus"}), 2), HasSubstr("--bogus"));
  EXPECT_THAT(OutputOf(ServerProgram({"--listen=127.0.0.1:0", "--mode=bogus"}), 2),
              HasSubstr("\"bogus\""));
  EXPECT_THAT(OutputOf(ServerProgram({"--listen=nowhere"}), 2), HasSubstr("nowhere"));
  EXPECT_THAT(OutputOf(ServerProgram(), 2), HasSubstr("--listen=host:port"));
}

TEST(CommandLineTest, OfTheWorkerIsCheckedBeforeItStarts) {
  EXPECT_THAT(OutputOf(Train("/nonexistent", {"--bogus"}), 2), HasSubstr("--bogus"));
  EXPECT_THAT(OutputOf(Train("/nonexistent", {"--batch-size=0"}), 2), HasSubstr("--batch-size"));
  EXPECT_THAT(OutputOf(Train("/nonexistent", {"--role=single", "--model=bogus"}), 2),
              HasSubstr("--model"));
  EXPECT_THAT(OutputOf(Train("/nonexistent"), 2), HasSubstr("--server=host:port"));
}

TEST(CommandLineTest, OfAProgramOfOnesOwnIsCheckedBeforeItStarts) {
  const std::string example = RunfilePath("worker/torch/examples/example");
  EXPECT_THAT(OutputOf({example, "--sluice-lease=bogus"}, 2), HasSubstr("--sluice-lease"));
  EXPECT_THAT(OutputOf({example, "--sluice-leas=9"}, 2),
              HasSubstr("Sluice has no flag --sluice-leas; the nearest is --sluice-lease\n"));
  EXPECT_THAT(OutputOf({example, "--server=127.0.0.1:1"}, 2),
              HasSubstr("give --sluice-server=host:port"));
}

TEST(CommandLineTest, IsExplainedByEveryProgram) {
  EXPECT_THAT(OutputOf(ServerProgram({"--help"}), 0), HasSubstr("--listen"));
  EXPECT_THAT(OutputOf(Train("/nonexistent", {"--help"}), 0),
              AllOf(HasSubstr("--model"), HasSubstr("--server")));
  EXPECT_THAT(OutputOf({RunfilePath("worker/torch/examples/example"), "--help"}, 0),
              HasSubstr(" --sluice-server "));
}

}  // namespace
}  // namespace sluice
