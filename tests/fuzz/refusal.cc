#include "tests/fuzz/refusal.h"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>

namespace sluice {
namespace {

constexpr size_t kLongestMessage = 2048;

bool IsUtf8(absl::string_view text) {
  try {
    nlohmann::json(std::string(text)).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace

void CheckSentence(absl::string_view text) {
  CHECK(!text.empty());
  CHECK_LE(text.size(), kLongestMessage) << text;
  CHECK(IsUtf8(text)) << text;
  CHECK(std::none_of(text.begin(), text.end(), [](unsigned char c) { return std::iscntrl(c); }))
      << text;
}

void CheckRefusal(const absl::Status& status, std::initializer_list<Reason> reasons) {
  const Reason reason = ReasonOf(status);
  CHECK(std::find(reasons.begin(), reasons.end(), reason) != reasons.end()) << status;
  CHECK(status.code() == MakeError(reason, "").code()) << status;
  CheckSentence(status.message());
}

void CheckRefusal(const absl::Status& status, std::initializer_list<absl::StatusCode> codes) {
  CHECK(std::find(codes.begin(), codes.end(), status.code()) != codes.end()) << status;
  CheckSentence(status.message());
}

}  // namespace sluice
