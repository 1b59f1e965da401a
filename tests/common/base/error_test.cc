#include "common/base/error.h"

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/process/process.h"

namespace sluice {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr Reason kLastReason = Reason::kDiverged;

bool IsUpperCaseName(const std::string& word) {
  return word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos;
}

// Status codes by reason, both by name, from the table in the contract that clients read: lines of
// "//   REASON   CODE   meaning; what to do".
std::map<std::string, std::string> DocumentedReasons() {
  std::ifstream contract(RunfilePath("proto/sluice/v1/parameter_server.proto"));
  std::map<std::string, std::string> reasons;
  for (std::string line; std::getline(contract, line);) {
    std::istringstream words(line);
    std::string slashes, reason, code, meaning;
    if (!(words >> slashes >> reason >> code >> meaning) || slashes != "//") continue;
    if (IsUpperCaseName(reason) && IsUpperCaseName(code)) reasons[reason] = code;
  }
  return reasons;
}

TEST(ErrorTest, ReasonsAndCodesAreThoseOfTheContract) {
  std::map<std::string, std::string> ours;
  for (int i = 1; i <= static_cast<int>(kLastReason); ++i) {
    const Reason reason = static_cast<Reason>(i);
    ours[std::string(ReasonName(reason))] =
        absl::StatusCodeToString(MakeError(reason, "message").code());
  }
  EXPECT_EQ(ours.size(), static_cast<size_t>(kLastReason)) << "a name is missing or used twice";
  EXPECT_THAT(ours, UnorderedElementsAreArray(DocumentedReasons()));
}

TEST(ErrorTest, CarriesReasonAndMessage) {
  const absl::Status status = MakeError(Reason::kWrongJob, "job is a, expected b");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "job is a, expected b");
  EXPECT_EQ(ReasonOf(status), Reason::kWrongJob);
}

TEST(ErrorTest, EveryReasonCanBeReadBack) {
  for (int i = 0; i <= static_cast<int>(kLastReason); ++i) {
    const Reason reason = static_cast<Reason>(i);
    EXPECT_EQ(ReasonOf(MakeError(reason, "message")), reason);
    EXPECT_EQ(ReasonFromName(ReasonName(reason)), reason);
  }
}

TEST(ErrorTest, TakesTheCodeThatCrossedTheWire) {
  const absl::Status status =
      MakeError(absl::StatusCode::kUnavailable, Reason::kBadToken, "message");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(status), Reason::kBadToken);
}

TEST(ErrorTest, ErrorsFromElsewhereHaveNoReason) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), Reason::kNone);
  EXPECT_EQ(ReasonOf(absl::UnavailableError("BAD_TOKEN")), Reason::kNone);
  EXPECT_EQ(MakeError(absl::StatusCode::kUnavailable, Reason::kNone, "message"),
            absl::UnavailableError("message"));
}

TEST(ErrorTest, UnknownNamesAreNoReason) {
  for (const char* name : {"", "NONE", "bad_token", "BAD_TOKEN ", "BAD_TOKEN\n", "OF_THE_FUTURE"}) {
    EXPECT_EQ(ReasonFromName(name), Reason::kNone) << name;
  }
  EXPECT_EQ(ReasonFromName(absl::string_view("BAD_TOKEN\0", 10)), Reason::kNone);
}

TEST(ErrorTest, NoReasonHasNoName) {
  EXPECT_THAT(std::string(ReasonName(Reason::kNone)), IsEmpty());
}

}  // namespace
}  // namespace sluice
