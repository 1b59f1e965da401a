// Matchers for absl::Status and absl::StatusOr.

#ifndef SLUICE_TESTS_TESTING_STATUS_H_
#define SLUICE_TESTS_TESTING_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/error.h"
#include "gmock/gmock.h"

namespace sluice {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

// EXPECT_THAT(coverage.Add(0, 1), IsOk());
MATCHER(IsOk, "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// EXPECT_THAT(ParseAddress("node7:1"), IsOkAndHolds(Field(&Address::port, 1)));
MATCHER_P(IsOkAndHolds, value, "is OK and holds what is expected") {
  *result_listener << "which is " << arg.status().ToString();
  return arg.ok() && ::testing::ExplainMatchResult(value, *arg, result_listener);
}

// EXPECT_THAT(status, HasCode(absl::StatusCode::kDataLoss, HasSubstr("no job ticket")));
MATCHER_P2(HasCode, code, message, "has the expected code and message") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

// EXPECT_THAT(status, IsError(Reason::kBadChunk, HasSubstr("is empty")));
// The status code is the one documented for the reason.
MATCHER_P2(IsError, reason, message, "has the expected reason, its code and the expected message") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return ReasonOf(status) == reason && status.code() == MakeError(reason, "").code() &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

}  // namespace sluice

#endif  // SLUICE_TESTS_TESTING_STATUS_H_
