// An operator looks at checkpoints.

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "tests/testing/durable/checkpoints.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/json.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SluicectlTest : public ::testing::Test {
 protected:
  SluicectlTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    CheckpointStore store(RealFileSystem(), directory_, 3);
    auto path = store.Save(*TrainedCheckpoint());
    EXPECT_THAT(path, IsOk());
    path_ = path.value_or("");
  }

  // Its exit code; what it printed is in `output_`.
  int Run(const Words& arguments) {
    Words words = {RunfilePath("tools/ctl/sluicectl"), "checkpoint"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto process = Start(words);
    const auto code = process->Wait();
    EXPECT_THAT(code, IsOk());
    output_ = process->output();
    return code.value_or(-1);
  }

  const std::string directory_ = absl::StrCat(::testing::TempDir(), "sluicectl");
  std::string path_;
  std::string output_;
};

TEST_F(SluicectlTest, ListsWhatIsInADirectory) {
  EXPECT_EQ(Run({"list", directory_}), 0);
  EXPECT_THAT(output_, HasSubstr("checkpoint-000001-000000000002.safetensors"));
  EXPECT_EQ(Run({"list", "--json", directory_}), 0);
  EXPECT_EQ(JsonAt(output_, "checkpoints.0.servers"), "1");
}

TEST_F(SluicectlTest, VerifiesAWholeOne) {
  EXPECT_EQ(Run({"verify", directory_}), 0);
  EXPECT_THAT(output_, HasSubstr("whole: step 2 of job job, 3 tensors, 6 elements, 2 slots"));
}

TEST_F(SluicectlTest, VerifiesNothingInADirectoryWithoutCheckpoints) {
  std::filesystem::remove(path_);
  EXPECT_EQ(Run({"verify", directory_}), 1);
  EXPECT_THAT(output_, HasSubstr(absl::StrCat(directory_, " has no checkpoint")));
}

TEST_F(SluicectlTest, FailsIfItsOutputIsCut) {
  const std::string program = RunfilePath("tools/ctl/sluicectl");
  const auto process =
      Start({"/bin/sh", "-c",
             absl::StrCat(program, " checkpoint list --json ", directory_, " > /dev/full")});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(1));
  EXPECT_THAT(process->output(), HasSubstr("could not write all of the output to stdout"));
}

TEST_F(SluicectlTest, ANameCannotMoveTheCursor) {
  ShardCheckpoint checkpoint = CheckpointAt(3);
  checkpoint.job_id = "x\xc2\x9by";  // U+009B begins a command to a terminal
  const auto path = CheckpointStore(RealFileSystem(), directory_, 3).Save(checkpoint);
  ASSERT_THAT(path, IsOk());
  EXPECT_EQ(Run({"show", "--json", *path}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("x\\u009by"), Not(HasSubstr("\x9b"))));
  EXPECT_EQ(Run({"show", *path}), 0);
  EXPECT_THAT(output_, AllOf(HasSubstr("job x\\302\\233y"), Not(HasSubstr("\x9b"))));
}

// In the place of sluicectl_export, which needs LibTorch, is a program that prints its arguments.
TEST_F(SluicectlTest, ExportsPathsThatBeginWithADash) {
  const std::string program = absl::StrCat(directory_, "/sluicectl");
  std::filesystem::copy_file(RunfilePath("tools/ctl/sluicectl"), program);
  std::ofstream(absl::StrCat(program, "_export")) << "#!/bin/sh\nprintf '<%s>' \"$@\"\n";
  std::filesystem::permissions(absl::StrCat(program, "_export"), std::filesystem::perms::owner_all);
  const auto process =
      Start({program, "checkpoint", "export", "--quiet", "--json", "--", "-a", "-b"});
  EXPECT_THAT(process->Wait(), IsOkAndHolds(0));
  EXPECT_EQ(process->output(), "<--quiet><--json><--><-a><-b>");
}

TEST_F(SluicectlTest, NamesADamagedOne) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_THAT(output_,
              AllOf(HasSubstr(absl::StrCat(path_, ": DAMAGED: ")), Not(HasSubstr("whole"))));
  EXPECT_EQ(Run({"show", path_}), 1);
}

// Three servers have saved a checkpoint to one directory.
class SluicectlServersTest : public SluicectlTest {
 protected:
  SluicectlServersTest() {
    std::filesystem::remove(path_);
    const CheckpointName name = {Incarnation(1), Step(9)};
    const auto checkpoint = KnownCheckpoint(name, LayoutOfSizes({1000, 24}));
    EXPECT_THAT(SaveAsServers(RealFileSystem(), directory_, checkpoint, 3), IsOk());
    path_ = absl::StrCat(directory_, "/", name.FileName());
  }

  std::string StripePath(int stripe) const {
    return absl::StrCat(directory_, "/stripe-000001-000000000009-", stripe, "-of-3.safetensors");
  }
};

TEST_F(SluicectlServersTest, ListsOneCheckpoint) {
  EXPECT_EQ(Run({"list", "--json", directory_}), 0);
  EXPECT_EQ(JsonAt(output_, "checkpoints.0.servers"), "3");
  uint64_t bytes = std::filesystem::file_size(path_);
  for (const int stripe : {0, 1, 2}) bytes += std::filesystem::file_size(StripePath(stripe));
  EXPECT_EQ(JsonAt(output_, "checkpoints.0.bytes"), absl::StrCat(bytes));
  EXPECT_EQ(JsonAt(output_, "checkpoints.0.file"), "checkpoint-000001-000000000009.safetensors");
  EXPECT_THAT(output_, Not(HasSubstr("stripe-")));
}

TEST_F(SluicectlServersTest, VerifiesAllStripes) {
  EXPECT_EQ(Run({"verify", directory_}), 0);
  EXPECT_THAT(output_, HasSubstr("whole: step 9 of job job, 2 tensors, 1024 elements, 2 slots, of "
                                 "3 servers"));
}

TEST_F(SluicectlServersTest, NamesEachFileThatIsMissingOrDamaged) {
  std::filesystem::remove(StripePath(0));
  std::filesystem::resize_file(StripePath(2), 1000);
  EXPECT_EQ(Run({"verify", path_}), 1);
  EXPECT_THAT(output_,
              AllOf(HasSubstr(path_ + ": DAMAGED: "), HasSubstr(StripePath(0) + " is missing"),
                    HasSubstr(StripePath(2) + ": "), Not(HasSubstr(StripePath(1))),
                    HasSubstr("found 1 damaged checkpoint;")));
}

TEST_F(SluicectlServersTest, ShowsTheStateAlsoWithoutTheStripes) {
  for (const int stripe : {0, 1, 2}) std::filesystem::remove(StripePath(stripe));
  EXPECT_EQ(Run({"show", "--json", path_}), 0);
  EXPECT_EQ(JsonAt(output_, "step"), "9");
  EXPECT_NE(JsonAt(output_, "stripes.2"), "");
}

TEST_F(SluicectlServersTest, SumsUpWhatIsSureOfADamagedOne) {
  EXPECT_EQ(Run({"show", path_}), 0);
  EXPECT_THAT(
      output_,
      ContainsRegex("files +complete, every byte was checked; its own take .*, of 3 servers"));
  std::filesystem::remove(StripePath(0));
  EXPECT_EQ(Run({"show", path_}), 1);
  EXPECT_THAT(output_, AllOf(ContainsRegex("step +9 of job job, incarnation 1"),
                             ContainsRegex("model +2 tensors, 1024 elements, 4.1 kB"),
                             ContainsRegex("files +DAMAGED OR MISSING; found "),
                             HasSubstr(StripePath(0) + " is missing")));
}

TEST_F(SluicectlServersTest, SaysWhoseDirectoryToVerify) {
  std::filesystem::remove(path_);
  EXPECT_EQ(Run({"verify", directory_}), 1);
  EXPECT_THAT(output_, HasSubstr("but one server's parts of them; name the directory of the first "
                                 "server, then with a comma between this one"));
}

// Each of three servers has saved its files to a directory of its own.
class SluicectlDirectoriesTest : public SluicectlServersTest {
 protected:
  SluicectlDirectoriesTest() {
    for (const int stripe : {1, 2}) {
      const std::filesystem::path from = StripePath(stripe);
      std::filesystem::remove_all(Other(stripe));
      std::filesystem::create_directories(Other(stripe));
      std::filesystem::rename(from, std::filesystem::path(Other(stripe)) / from.filename());
    }
  }

  std::string Other(int server) const { return absl::StrCat(directory_, "_of_", server); }

  const std::string all_ = absl::StrCat(directory_, ",", Other(1), ",", Other(2));
};

TEST_F(SluicectlDirectoriesTest, VerifiesTheStripesOfAll) {
  EXPECT_EQ(Run({"verify", all_}), 0);
  EXPECT_THAT(output_, HasSubstr(path_ + ": whole: step 9 of job job"));
  EXPECT_EQ(Run({"verify", absl::StrCat(path_, ",", Other(2), ",", Other(1))}), 0);
}

TEST_F(SluicectlDirectoriesTest, NamesTheServerWhoseStripeIsMissingAndWhatToDo) {
  EXPECT_EQ(Run({"verify", directory_}), 1);
  EXPECT_THAT(output_,
              AllOf(HasSubstr(StripePath(1) + " is missing: it is the part of server 1 of "
                                              "3; copy it there from that server's "
                                              "--checkpoint-dir"),
                    HasSubstr("it is the part of server 2 of 3"),
                    HasSubstr("if each of several servers has a directory of its own, name "
                              "them all, the first server's first, with commas between")));
  EXPECT_EQ(Run({"verify", absl::StrCat(directory_, ",", Other(2))}), 1);
  EXPECT_THAT(output_, AllOf(HasSubstr(absl::StrCat("is missing, also in ", Other(2),
                                                    ": it is the part of server 1 of 3")),
                             Not(HasSubstr("server 2 of 3"))));
}

TEST_F(SluicectlDirectoriesTest, NamesADirectoryThatIsNotThere) {
  for (const char* command : {"list", "verify", "show"}) {
    EXPECT_EQ(Run({command, all_ + ",/no/such"}), 1);
    EXPECT_THAT(output_, HasSubstr("/no/such")) << command;
  }
}

TEST_F(SluicectlDirectoriesTest, FindsADamagedStripeInTheDirectoryOfItsServer) {
  const std::string stripe =
      absl::StrCat(Other(2), "/", std::filesystem::path(StripePath(2)).filename().string());
  std::filesystem::resize_file(stripe, 1000);
  EXPECT_EQ(Run({"verify", all_}), 1);
  EXPECT_THAT(output_, HasSubstr(stripe + ": "));
}

TEST_F(SluicectlDirectoriesTest, ListsTheBytesOfAll) {
  EXPECT_EQ(Run({"list", "--json", directory_}), 0);
  const std::string of_first = JsonAt(output_, "checkpoints.0.bytes");
  EXPECT_EQ(Run({"list", "--json", all_}), 0);
  EXPECT_EQ(JsonAt(output_, "checkpoints.0.servers"), "3");
  EXPECT_GT(std::stoull(JsonAt(output_, "checkpoints.0.bytes")), std::stoull(of_first));
}

TEST_F(SluicectlDirectoriesTest, ShowsTheNewest) {
  EXPECT_EQ(Run({"show", "--json", all_}), 0);
  EXPECT_EQ(JsonAt(output_, "step"), "9");
}

TEST_F(SluicectlTest, ShowsAllButTheValues) {
  EXPECT_EQ(Run({"show", "--json", path_}), 0);
  EXPECT_EQ(JsonAt(output_, "step"), "2");
  EXPECT_EQ(JsonAt(output_, "workers.0.worker"), "a");
  EXPECT_EQ(JsonAt(output_, "optimizer.adam.learningRate"), "0.5");
}

TEST_F(SluicectlTest, SumsUpACheckpointInWords) {
  EXPECT_EQ(Run({"show", directory_}), 0);
  EXPECT_THAT(output_,
              AllOf(HasSubstr(absl::StrCat("checkpoint    ", path_, "\n")),
                    HasSubstr("step          2 of job job, incarnation 1; training went on\n"),
                    ContainsRegex("\nwritten       [0-9]+ s ago, at 20"),
                    HasSubstr("\nmodel         3 tensors, 6 elements, 24 B\n"),
                    HasSubstr("\noptimizer     adam, learning rate 0.5, schedule constant\n"),
                    HasSubstr("\nrules         sync; mean, in the order of "),
                    HasSubstr("\nworkers       2 known: a, b\n"),
                    HasSubstr("\nfiles         complete, every byte was checked; its own take "),
                    Not(HasSubstr("tables"))));
}

TEST_F(SluicectlTest, SaysThatADirectoryHasNoCheckpoint) {
  std::filesystem::remove(path_);
  EXPECT_EQ(Run({"list", directory_}), 0);
  EXPECT_EQ(output_, directory_ + " has no checkpoint\n");
  EXPECT_EQ(Run({"list", "--json", directory_}), 0);
  EXPECT_EQ(output_, "{\"checkpoints\":[]}\n");
}

TEST_F(SluicectlTest, RefusesAWrongCommandLine) {
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_EQ(Run({"show", "/no/such/file"}), 1);
  EXPECT_THAT(output_, HasSubstr("No such file"));
}

}  // namespace
}  // namespace sluice
