// A job under mpirun that is told to stop, as by Ctrl-C: it tells what was done, and leaves nothing
// behind.

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/mpi_environment.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Ne;
using ::testing::Not;

// An own directory for all that a job leaves in temporary directories. Its path is short, as that
// of a unix socket must be.
class TemporaryDirectory {
 public:
  TemporaryDirectory() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

  std::vector<std::string> Listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

 private:
  std::string path_ = "/tmp/stop-XXXXXX";
};

Process::Environment In(const std::string& directory) {
  Process::Environment environment = PatientMpi();
  environment["TMPDIR"] = directory;
  environment["XDG_RUNTIME_DIR"] = directory;
  return environment;
}

// Workers without LibTorch, which takes a second to load.
Words Push(const Words& flags) {
  return With({RunfilePath("tests/testing/process/pushing_worker_program"), "--steps=1000000000",
               "--gradient=1", "--elements=1000"},
              flags);
}

void ExpectTellsAndLeavesNothing(int signal, const Words& program) {
  const TemporaryDirectory directory;
  const auto job = Mpirun({{3, program}}, RankDeath::kEndsTheJob, In(directory.path()));
  const auto address = job->WaitForOutput("job [0-9a-f]+: listening on (unix:[^ ]+)");
  ASSERT_THAT(address, IsOkAndHolds(HasSubstr(directory.path())));
  ASSERT_THAT(WaitForAccepted(*address, 1), IsOk());
  job->Signal(signal);
  EXPECT_THAT(job->Wait(kJob), IsOkAndHolds(Ne(0))) << job->output();
  EXPECT_THAT(Counters(job->output()),
              AllOf(HasSubstr(" received: "), Not(HasSubstr("unbalanced"))))
      << job->output();
  EXPECT_THAT(directory.Listing(), IsEmpty());
}

TEST(StopLaunchTest, AfterCtrlCAJobTellsWhatWasDoneAndLeavesNothing) {
  ExpectTellsAndLeavesNothing(SIGINT, {RunfilePath("worker/sluice_train"), "--model=mlp",
                                       "--epochs=1000000", "--progress=off"});
}

TEST(StopLaunchTest, AfterSigtermAJobTellsWhatWasDoneAndLeavesNothing) {
  ExpectTellsAndLeavesNothing(SIGTERM, Push({}));
}

TEST(StopLaunchTest, AJobWithSeveralServersDoesSo) {
  ExpectTellsAndLeavesNothing(SIGINT, Push({"--servers=2"}));
}

TEST(StopLaunchTest, AJobWithSupervisorsDoesSo) {
  ExpectTellsAndLeavesNothing(SIGINT, Push({"--max-restarts=5"}));
}

}  // namespace
}  // namespace sluice
