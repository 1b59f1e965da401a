// The example programs with tables: a job trains what one process trains.

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/launch.h"
#include "tests/testing/process/process.h"
#include "tests/testing/process/programs.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;
using ::testing::SizeIs;

const Words kShort = {"--epochs=2", "--batches=20"};

// The number after "test loss" in each line that has it.
std::vector<double> Losses(const std::string& output) {
  std::vector<double> losses;
  for (const std::string& line : LinesWith(output, "test loss")) {
    const std::vector<std::string> parts = absl::StrSplit(line, "test loss ");
    losses.push_back(std::strtod(parts.at(1).c_str(), nullptr));
  }
  return losses;
}

std::vector<double> LossesOf(Process& process) {
  EXPECT_THAT(process.Wait(absl::Minutes(2)), IsOkAndHolds(0)) << process.output();
  return Losses(process.output());
}

// Workers add their halves of a batch in another order than one process adds the whole, and
// Adagrad's first steps are large whatever the gradient. Servers change no bit.
void ExpectTheLossesOfOneProcess(const std::string& example) {
  const Words program = With({RunfilePath("worker/torch/examples/" + example)}, kShort);
  const std::vector<double> expected = LossesOf(*Start(With(program, {"--single"})));
  EXPECT_THAT(expected, SizeIs(2));
  const std::vector<double> losses = LossesOf(*Mpirun({{3, program}}));
  EXPECT_THAT(losses, Pointwise(DoubleNear(1e-3), expected));
  EXPECT_EQ(LossesOf(*Mpirun({{4, With(program, {"--servers=2"})}})), losses);
}

TEST(TableExamplesTest, MatrixFactorizationHasTheLossesOfOneProcess) {
  ExpectTheLossesOfOneProcess("matrix_factorization");
}

TEST(TableExamplesTest, DlrmHasTheLossesOfOneProcess) { ExpectTheLossesOfOneProcess("dlrm"); }

}  // namespace
}  // namespace sluice
