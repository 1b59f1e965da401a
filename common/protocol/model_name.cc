#include "common/protocol/model_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

absl::Status CheckModelName(absl::string_view name) {
  constexpr size_t kMostBytes = 64;
  const bool sound =
      !name.empty() && name.size() <= kMostBytes && absl::ascii_isalnum(name.front()) &&
      std::all_of(name.begin(), name.end(), [](char letter) {
        return absl::ascii_isalnum(letter) || letter == '.' || letter == '-' || letter == '_';
      });
  if (sound) return absl::OkStatus();
  return MakeError(
      Reason::kBadArgument,
      absl::StrCat("the model's name is \"", Shown(name), "\", expected at most ", kMostBytes,
                   " letters, digits, \".\", \"-\" and \"_\", the first ", "a letter or a digit"));
}

}  // namespace sluice
