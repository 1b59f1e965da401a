// sluicectl as an operator runs it, against a real server in this process.

#include <glog/logging.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/server/certificates.h"
#include "tests/testing/server/server_world.h"
#include "tests/testing/server/tls_world.h"
#include "tests/testing/status.h"
#include "tests/testing/trace_events.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kProgram[] = "tools/ctl/sluicectl";

// A server with two workers, a and b, at step 1. Worker a has contributed to the next step.
class OperatorCommandsTest : public ::testing::Test {
 protected:
  OperatorCommandsTest() {
    setenv("SLUICE_CONTEXTS", "/none", 1);  // not this user's
    EXPECT_THAT(world_.Join("a"), IsOk());
    EXPECT_THAT(world_.Join("b"), IsOk());
    EXPECT_THAT(world_.Initialize("a", {1, 2, 3}), IsOk());
    EXPECT_THAT(world_.Push("a", 0, {1, 1, 1}), IsOk());
    EXPECT_THAT(world_.Push("b", 0, {1, 1, 1}), IsOk());
    EXPECT_THAT(world_.Push("a", 1, {1, 1, 1}), IsOk());
  }

  // What it prints; its exit code must be `code`.
  std::string Ctl(const Words& words, int code = 0) {
    return OutputOf(With({kProgram, absl::StrCat("--server=", world_.address().ToString())}, words),
                    code);
  }

  ServerWorld world_{Sync(2), ParametersOnly(3)};
};

TEST_F(OperatorCommandsTest, StatusShowsWhoIsAwaited) {
  EXPECT_THAT(
      Ctl({"status"}),
      AllOf(HasSubstr(absl::StrCat(" at ", world_.address().ToString(), ": TRAINING, step 1, ")),
            HasSubstr("\nworkers       2 present, 0 lost, 0 left, 0 evicted; 0 observers\n"),
            HasSubstr("\nawaited       b (last seen "),
            HasSubstr("\npushes        3 received: 3 accepted, ")));
}

TEST_F(OperatorCommandsTest, StatusAsJsonHasTheNamesOfTheProto) {
  const std::string json = Ctl({"status", "--json"});
  EXPECT_EQ(JsonAt(json, "step"), "1");
  EXPECT_EQ(JsonAt(json, "pushes.accepted"), "3");
  EXPECT_EQ(JsonAt(json, "current.awaited.0.worker"), "b");
}

TEST_F(OperatorCommandsTest, WorkersAreSortedAndThoseThatLeftAreShownOnRequest) {
  ASSERT_THAT(world_.Join("c"), IsOk());
  ASSERT_THAT(world_.Leave("c"), IsOk());
  EXPECT_THAT(Ctl({"workers", "--sort=lag"}),
              AllOf(StartsWith("WORKER  STATE "), HasSubstr("\nb       present     0    1 "),
                    Not(HasSubstr("\nc  "))));
  EXPECT_THAT(Ctl({"workers", "--all"}), HasSubstr("\nc       left "));
  for (const char* worker : {"a", "b"}) ASSERT_THAT(world_.Leave(worker), IsOk());
  EXPECT_EQ(Ctl({"workers"}),
            "no worker takes part; --all also lists those that have left or were evicted\n");
}

TEST_F(OperatorCommandsTest, WorkersAsJsonAreSortedToo) {
  const std::string json = Ctl({"workers", "--json", "--sort=lag"});
  EXPECT_EQ(JsonAt(json, "workers"), "[2]");
  EXPECT_EQ(JsonAt(json, "workers.0.worker"), "b");
}

TEST_F(OperatorCommandsTest, ANameCannotMoveTheCursor) {
  ASSERT_THAT(world_.Join("x\x1b[2Jy"), IsOk());
  EXPECT_THAT(Ctl({"workers"}), AllOf(HasSubstr("\nx\\033[2Jy "), Not(HasSubstr("\x1b"))));
}

TEST_F(OperatorCommandsTest, ParamsListsTensorsAndShowsOne) {
  EXPECT_THAT(Ctl({"params"}), HasSubstr("\n1 tensor, 3 elements, 12 B\n"));
  const std::string name = JsonAt(Ctl({"params", "--json"}), "parameters.0.name");
  EXPECT_THAT(Ctl({"params", name}), HasSubstr(" at step 1: 3 elements from 0 on\n"));
  const std::string json = Ctl({"params", name, "--first=1", "--count=1", "--json"});
  EXPECT_EQ(JsonAt(json, "first"), "1");
  EXPECT_EQ(JsonAt(json, "values"), "[1]");
  EXPECT_THAT(Ctl({"params", "nothing"}, 1), HasSubstr("sluicectl: no parameter \"nothing\""));
}

TEST_F(OperatorCommandsTest, WatchPrintsALineForEachChangeUntilTheServerEnds) {
  const auto watch = Start({kProgram, absl::StrCat("--server=", world_.address().ToString()),
                            "watch", "--interval=0.1"});
  ASSERT_THAT(watch->WaitForOutput("^TRAINING step 1: 2 workers, 1 of 2 gradients"), IsOk());
  ASSERT_THAT(world_.Push("b", 1, {1, 1, 1}), IsOk());
  ASSERT_THAT(watch->WaitForOutput("^TRAINING step 2: "), IsOk());
  for (const char* worker : {"a", "b"}) EXPECT_TRUE(world_.Break(worker));
  world_.Stop(kPatience);
  EXPECT_THAT(watch->Wait(), IsOkAndHolds(0));
}

TEST_F(OperatorCommandsTest, WatchEndsAfterAsManyLinesAsWereAskedFor) {
  EXPECT_EQ(JsonAt(Ctl({"watch", "--changes=1", "--json"}), "step"), "1");
}

TEST_F(OperatorCommandsTest, PolicySetChangesOneRuleAndKeepsTheOthers) {
  EXPECT_THAT(Ctl({"policy", "set", "--max-step-wait=5", "--on-max-step-wait=proceed"}),
              HasSubstr("from step 2 on: sync; mean, in the order of "));
  ASSERT_THAT(world_.Push("b", 1, {1, 1, 1}), IsOk());
  EXPECT_THAT(Ctl({"policy", "set", "--reduction=sum"}), HasSubstr("sum, in the order of "));
  EXPECT_THAT(Ctl({"policy", "show"}),
              AllOf(HasSubstr("rules         sync; sum, "), HasSubstr("for 5.0 s, then proceed")));
}

TEST_F(OperatorCommandsTest, PolicySetWithAModeReplacesAllRules) {
  Ctl({"policy", "set", "--max-step-wait=5"});
  EXPECT_THAT(
      Ctl({"policy", "set", "--mode=bounded", "--max-staleness=7", "--on-max-step-wait=evict"}),
      AllOf(HasSubstr("bounded, quorum 1, max_staleness 7; mean, in the order of arrival\n"),
            HasSubstr("without effect in these rules: on_max_step_wait\n"),
            Not(HasSubstr("5.0 s"))));
}

TEST_F(OperatorCommandsTest, WhatTheServerRefusesEndsWithOne) {
  EXPECT_THAT(Ctl({"policy", "set", "--mode=sync", "--quorum=3"}, 1), StartsWith("sluicectl: "));
  EXPECT_THAT(Ctl({"checkpoint", "save"}, 1),
              HasSubstr("this server keeps no checkpoints; start it with --checkpoint-dir"));
  EXPECT_THAT(Ctl({"evict", "nobody", "--yes"}, 1), HasSubstr("nobody"));
}

TEST_F(OperatorCommandsTest, LrSetChangesTheLearningRate) {
  EXPECT_EQ(Ctl({"lr", "set", "0.25"}), "from step 2 on: learning rate 0.25\n");
  EXPECT_EQ(Ctl({"lr", "set", "0.5", "--quiet"}), "");
  ASSERT_THAT(world_.Push("b", 1, {1, 1, 1}), IsOk());
  EXPECT_EQ(JsonAt(Ctl({"status", "--json"}), "learningRate"), "0.5");
}

TEST_F(OperatorCommandsTest, EvictRemovesAWorker) {
  EXPECT_EQ(Ctl({"evict", "b", "--yes"}), "evicted b\n");
  EXPECT_EQ(world_.NextEvent("b"), "evicted");
  EXPECT_THAT(Ctl({"workers", "--all"}), HasSubstr("\nb       evicted "));
}

TEST_F(OperatorCommandsTest, WithoutATerminalDangerousCommandsNeedYes) {
  EXPECT_THAT(Ctl({"evict", "b"}, 2),
              HasSubstr("There is no terminal to ask; give --yes to do it."));
  EXPECT_THAT(Ctl({"drain"}, 2), HasSubstr("give --yes to do it"));
  EXPECT_EQ(JsonAt(Ctl({"status", "--json"}), "workers"), "2");
}

TEST_F(OperatorCommandsTest, OnATerminalDangerousCommandsAsk) {
  const std::string drain = absl::StrCat(kProgram, " drain --server=", world_.address().ToString());
  // script gives the program a terminal, and types for it.
  const auto answered = [&](const std::string& answer, int code) {
    return OutputOf({"/bin/sh", "-c",
                     absl::StrCat("echo '", answer, "' | script -qec '", drain, "' /dev/null")},
                    code);
  };
  EXPECT_THAT(answered("n", 1), AllOf(HasSubstr("[y/N]"), HasSubstr("nothing was changed")));
  EXPECT_THAT(answered("", 1), HasSubstr("nothing was changed"));
  EXPECT_EQ(JsonAt(Ctl({"status", "--json"}), "phase"), "TRAINING");
  EXPECT_THAT(answered("y", 0), HasSubstr("draining at step 1"));
  EXPECT_EQ(JsonAt(Ctl({"status", "--json"}), "phase"), "DRAINING");
}

TEST_F(OperatorCommandsTest, DrainEndsTheJob) {
  EXPECT_EQ(JsonAt(Ctl({"drain", "--yes", "--json"}), "step"), "1");
  EXPECT_EQ(world_.NextEvent("a"), "draining");
}

TEST_F(OperatorCommandsTest, AWrongCommandLineEndsWithTwo) {
  EXPECT_THAT(OutputOf({kProgram}, 2), HasSubstr("subcommand"));
  EXPECT_THAT(
      OutputOf({kProgram, "status"}, 2),
      HasSubstr("sluicectl: found no address of a server, expected one: give --server=host:port"));
  EXPECT_THAT(OutputOf({kProgram, "status", "--server=nowhere"}, 2), HasSubstr("nowhere"));
  EXPECT_THAT(OutputOf({kProgram, "status", "--server=10.0.0.1:7070"}, 2),
              HasSubstr("--insecure-on-network"));
  EXPECT_THAT(Ctl({"workers", "--sort=speed"}, 2), HasSubstr("--sort"));
  EXPECT_THAT(Ctl({"lr", "set", "nan"}, 2), HasSubstr("expected a number from 0 to"));
  EXPECT_THAT(Ctl({"policy", "set"}, 2), HasSubstr("found no rule to set"));
  EXPECT_THAT(Ctl({"policy", "set", "--staleness-rules=some"}, 2), HasSubstr("some"));
}

TEST_F(OperatorCommandsTest, AServerThatCannotBeReachedEndsWithThree) {
  EXPECT_THAT(OutputOf({kProgram, absl::StrCat("--server=127.0.0.1:", FreePort()),
                        "--connect-timeout=0.1", "status"},
                       3),
              HasSubstr("sluicectl: no server at 127.0.0.1:"));
}

TEST(OperatorCheckpointTest, SaveTellsTheFileAndStatusItsStep) {
  const std::string directory = TestPath("saved");
  std::filesystem::remove_all(directory);
  const Standalone server({"--workers=1", "--checkpoint-dir=" + directory});
  const auto worker = Start({"tests/testing/process/pushing_worker_program", server.flag(),
                             "--steps=9", "--gradient=1", "--stop-at-step=3"});
  ASSERT_THAT(worker->WaitForOutput("stopped at step 3"), IsOk());
  EXPECT_EQ(OutputOf({kProgram, server.flag(), "checkpoint", "save"}, 0),
            absl::StrCat("step 3 is saved on the server's machine: ", directory,
                         "/checkpoint-000001-000000000003.safetensors\n"));
  EXPECT_EQ(
      JsonAt(OutputOf({kProgram, server.flag(), "status", "--json"}, 0), "lastCheckpoint.step"),
      "3");
  EXPECT_EQ(JsonAt(OutputOf({kProgram, server.flag(), "watch", "--changes=1", "--json"}, 0),
                   "lastCheckpoint.step"),
            "3");
  EXPECT_THAT(OutputOf({kProgram, server.flag(), "status"}, 0),
              HasSubstr("\ncheckpoint    step 3, saved "));
  EXPECT_THAT(OutputOf({kProgram, "checkpoint", "verify", directory}, 0),
              HasSubstr(": whole: step 3 of job "));
}

TEST_F(OperatorCommandsTest, LogsPrintsTheLatestLinesSafely) {
  LOG(INFO) << "older";
  LOG(WARNING) << "a line with \x1b[2J";
  EXPECT_THAT(Ctl({"logs", "--lines=1"}),
              AllOf(EndsWith(" WARNING a line with \\033[2J\n"), Not(HasSubstr("older"))));
  EXPECT_THAT(Ctl({"logs"}), HasSubstr(" INFO older\n"));
  EXPECT_EQ(JsonAt(Ctl({"logs", "--lines=1", "--json"}), "severity"), "WARNING");
}

TEST_F(OperatorCommandsTest, TraceWritesWhatTheServerDoesMeanwhile) {
  const std::string out = TestPath("trace.json");
  const auto tracing = Start({kProgram, absl::StrCat("--server=", world_.address().ToString()),
                              "trace", out, "--seconds=10"});
  // It has begun when a push is recorded.
  ASSERT_TRUE(world_.Await([this] { return world_.shard().store().trace()->records(); }));
  ASSERT_THAT(world_.Push("b", 1, {1, 1, 1}), IsOk());
  EXPECT_THAT(tracing->Wait(), IsOkAndHolds(0));
  EXPECT_THAT(tracing->output(), HasSubstr(absl::StrCat(" in ", out, "; chrome://tracing")));
  const auto spans = ReadTrace(out);
  ASSERT_THAT(spans, IsOk());
  EXPECT_EQ(SpansOf(*spans, "server", "apply").size(), 1);
  EXPECT_EQ(SpansOf(*spans, "server", "push").at(0).row, "push b");
  // The server ends the call once the client has read its end.
  EXPECT_TRUE(world_.Await([this] { return !world_.shard().store().trace()->records(); }));
}

TEST_F(OperatorCommandsTest, TraceRefusesAFileThatItCannotWriteAndATimeThatIsTooLong) {
  EXPECT_THAT(Ctl({"trace", "/none/trace.json", "--seconds=0.1"}, 1),
              HasSubstr("/none/trace.json"));
  EXPECT_THAT(Ctl({"trace", TestPath("trace.json"), "--seconds=61"}, 2), HasSubstr("--seconds"));
}

TEST(OperatorAccessTest, AWrongTokenEndsWithFour) {
  ServerWorld world(Sync(1), ParametersOnly(3), "secret");
  const std::string server = absl::StrCat("--server=", world.address().ToString());
  const std::string token = TestPath("token");
  OutputOf({"/bin/sh", "-c", absl::StrCat("umask 77; echo secret >", token)}, 0);
  EXPECT_THAT(OutputOf({kProgram, server, "lr", "set", "1"}, 4),
              HasSubstr("give --token-file with the token"));
  EXPECT_THAT(OutputOf({kProgram, server, "drain", "--yes", "--token-file=" + token}, 0),
              HasSubstr("draining"));
}

TEST(OperatorAccessTest, ACertificateWithoutTheRoleEndsWithFour) {
  const TestAuthority authority;
  const TlsWorld world(SourceOf(authority.Server()));
  const Words observer =
      TlsFlags(WriteCredentials(authority.Client({Role::kObserver}), TestPath("observer")));
  const Words admin =
      TlsFlags(WriteCredentials(authority.Client({Role::kAdmin}), TestPath("admin")));
  const Words words = {kProgram, absl::StrCat("--server=", world.address())};
  EXPECT_THAT(OutputOf(With(With(words, {"status"}), observer), 0),
              HasSubstr("WAITING_FOR_WORKERS"));
  EXPECT_THAT(OutputOf(With(With(words, {"drain", "--yes"}), observer), 4),
              AllOf(HasSubstr("needs the role admin"),
                    HasSubstr("give --tls-cert and --tls-key of such a role")));
  EXPECT_THAT(OutputOf(With(With(words, {"drain", "--yes"}), admin), 0), HasSubstr("draining"));
}

}  // namespace
}  // namespace sluice
