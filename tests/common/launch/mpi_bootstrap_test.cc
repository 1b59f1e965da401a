#include "common/launch/mpi_bootstrap.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/mpi_environment.h"
#include "tests/testing/process/process.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::Each;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// Launches the program whose ranks take part in MpiBootstrap, with a blob for rank 0 to broadcast.
class MpiBootstrapTest : public ::testing::Test {
 protected:
  void Mpirun(int ranks, const std::string& blob, const std::vector<std::string>& refusals = {}) {
    std::vector<std::string> words = {"mpirun", "--oversubscribe",   "--bind-to", "none",
                                      "-n",     absl::StrCat(ranks), kProgram,    WriteBlob(blob)};
    words.insert(words.end(), refusals.begin(), refusals.end());
    Launch(words);
  }

  void RunAlone(const std::string& blob) { Launch({kProgram, WriteBlob(blob)}); }

  // What each of `ranks` ranks received.
  std::vector<std::string> Received(int ranks) {
    std::vector<std::string> blobs;
    for (int rank = 0; rank < ranks; ++rank)
      blobs.push_back(ReadFile(absl::StrCat(path_, ".", rank)));
    return blobs;
  }

  // What the ranks said, a line each.
  std::vector<std::string> lines_;

 private:
  const std::string kProgram = RunfilePath("tests/common/launch/mpi_bootstrap_program");

  std::string WriteBlob(const std::string& blob) {
    std::ofstream(path_, std::ios::binary) << blob;
    return path_;
  }

  void Launch(const std::vector<std::string>& argv) {
    auto process = Process::Start(argv, MpiEnvironment());
    ASSERT_THAT(process, IsOk());
    ASSERT_THAT((*process)->Wait(), IsOkAndHolds(0)) << (*process)->output();
    // Launchers have things to say as well.
    const auto is_ours = [](absl::string_view line) { return absl::StartsWith(line, "rank "); };
    lines_ = absl::StrSplit((*process)->output(), '\n', is_ours);
  }

  const std::string path_ = absl::StrCat(
      ::testing::TempDir(), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(MpiBootstrapTest, TellsEveryRankItsPlaceAndAsksRankZeroAloneForTheBlob) {
  Mpirun(3, "blob");
  EXPECT_THAT(lines_, UnorderedElementsAre(
                          "rank 0 of 3, one_node=1, node=0, launched=1, blob made for 0/3",
                          "rank 1 of 3, one_node=1, node=0, launched=1, blob made for none",
                          "rank 2 of 3, one_node=1, node=0, launched=1, blob made for none"));
}

TEST_F(MpiBootstrapTest, TellsRankZeroWhatEachRankNoted) {
  Mpirun(4, "secret", {"chosen"});
  ASSERT_THAT(lines_, SizeIs(4));
  std::sort(lines_.begin(), lines_.end());
  std::vector<std::string> notes;
  for (const std::string& line : lines_) {
    notes.push_back(line.substr(13, line.find(',') - 13));  // "rank 0 noted 123, got …"
  }
  EXPECT_EQ(lines_[0], absl::StrCat("rank 0 noted ", notes[0], ", got all and 0 bytes, was told ",
                                    absl::StrJoin(notes, ",")));
  EXPECT_EQ(lines_[3], absl::StrCat("rank 3 noted ", notes[3], ", got all and 0 bytes, was told "));
}

TEST_F(MpiBootstrapTest, HandsABlobToTheChosenRanksAlone) {
  Mpirun(5, std::string(100'000, 's'), {"chosen", "1", "3"});
  ASSERT_THAT(lines_, SizeIs(5));
  std::sort(lines_.begin(), lines_.end());
  for (int rank = 0; rank < 5; ++rank) {
    const char* const got = rank == 1 || rank == 3 ? "got all and 100000 bytes" : "all and 0 bytes";
    EXPECT_THAT(lines_[rank], HasSubstr(got));
  }
}

TEST_F(MpiBootstrapTest, GivesEveryRankTheBlobOfRankZero) {
  Mpirun(3, "unix:/run/sluice/socket");
  EXPECT_THAT(Received(3), Each(Eq("unix:/run/sluice/socket")));
}

TEST_F(MpiBootstrapTest, CarriesAMebibyteOfAnyBytes) {
  std::mt19937 random(7);
  std::string blob(1 << 20, '\0');
  for (size_t i = 0; i < blob.size(); ++i)
    blob[i] = i % 3 == 0 ? '\0' : static_cast<char>(random());
  Mpirun(2, blob);
  EXPECT_TRUE(Received(2) == std::vector<std::string>(2, blob));
}

TEST_F(MpiBootstrapTest, CarriesAnEmptyBlob) {
  Mpirun(2, "");
  EXPECT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(Received(2), Each(Eq("")));
}

TEST_F(MpiBootstrapTest, TellsEveryRankWhyTheLowestRefusesAndMakesNoBlob) {
  Mpirun(4, "blob", {"3", "1"});
  const std::string heard = "heard: INVALID_ARGUMENT: rank 1: number 1 refuses, blob made for none";
  EXPECT_THAT(lines_, UnorderedElementsAre(
                          "rank 0 " + heard,
                          "rank 1 says: INVALID_ARGUMENT: number 1 refuses, blob made for none",
                          "rank 2 " + heard, "rank 3 " + heard));
}

TEST_F(MpiBootstrapTest, TellsEveryRankWhyRankZeroHasNoBlob) {
  Mpirun(2, "blob", {"blob"});
  EXPECT_THAT(lines_,
              UnorderedElementsAre(
                  "rank 0 says: INVALID_ARGUMENT: the maker refuses, blob made for 0/2",
                  "rank 1 heard: INVALID_ARGUMENT: rank 0: the maker refuses, blob made for none"));
}

TEST_F(MpiBootstrapTest, FinalizesMpiWhereNobodyElseUsesIt) {
  Mpirun(2, "blob", {"mpi"});
  EXPECT_THAT(lines_, UnorderedElementsAre("rank 0, finalized=1, got blob",
                                           "rank 1, finalized=1, got blob"));
}

TEST_F(MpiBootstrapTest, LeavesMpiToAProgramThatHasInitialisedIt) {
  Mpirun(2, "blob", {"mpi", "0", "1"});
  EXPECT_THAT(lines_, UnorderedElementsAre("rank 0, finalized=0, sent itself 7, got blob",
                                           "rank 1, finalized=0, sent itself 7, got blob"));
}

// MPI_Finalize waits for all ranks: at once it would wait until the others' programs end.
TEST_F(MpiBootstrapTest, RanksThatDoNotUseMpiFinalizeItAtTheirEndIfOthersUseIt) {
  Mpirun(3, "blob", {"mpi", "1", "2"});
  EXPECT_THAT(lines_, UnorderedElementsAre("rank 0, finalized=0, got blob",
                                           "rank 1, finalized=0, sent itself 7, got blob",
                                           "rank 2, finalized=0, sent itself 7, got blob"));
}

TEST_F(MpiBootstrapTest, SaysThatMpiIsOver) {
  Mpirun(2, "blob", {"mpi", "over", "0", "1"});
  EXPECT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(lines_,
              Each(HasSubstr("finalized=1 says: MPI was finalized in this process before")));
}

TEST_F(MpiBootstrapTest, IsAWorldOfOneWithoutALauncher) {
  RunAlone("blob");
  EXPECT_THAT(lines_, UnorderedElementsAre(
                          "rank 0 of 1, one_node=1, node=0, launched=0, blob made for 0/1"));
  EXPECT_THAT(Received(1), Each(Eq("blob")));
}

TEST(LaunchedByMpiTest, KnowsTheCommonLaunchers) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(LaunchedByMpi());
    setenv(name, "0", 1);
    EXPECT_TRUE(LaunchedByMpi());
    unsetenv(name);
  }
}

TEST(LaunchedByMpiTest, IsNotFooledByAnAllocationOfSlurm) {
  setenv("SLURM_JOB_ID", "1", 1);
  setenv("SLURM_PROCID", "0", 1);
  EXPECT_FALSE(LaunchedByMpi());
}

}  // namespace
}  // namespace sluice
