#include "server/durable/format/numbered_name.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice {

std::string NumberedName(absl::string_view prefix, IncarnationAndStep numbers,
                         absl::string_view suffix) {
  return absl::StrFormat("%s%06d-%012d%s", prefix, numbers.first.value(), numbers.second.value(),
                         suffix);
}

absl::optional<IncarnationAndStep> ParseNumberedName(absl::string_view prefix,
                                                     absl::string_view name,
                                                     absl::string_view suffix) {
  absl::string_view numbers = name;
  if (!absl::ConsumePrefix(&numbers, prefix) || !absl::ConsumeSuffix(&numbers, suffix)) {
    return absl::nullopt;
  }
  uint64_t incarnation = 0;
  uint64_t step = 0;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(numbers, absl::MaxSplits('-', 1));
  if (!absl::SimpleAtoi(parts.first, &incarnation) || !absl::SimpleAtoi(parts.second, &step)) {
    return absl::nullopt;
  }
  // Other spellings of the same numbers are not names of ours.
  const IncarnationAndStep found(incarnation, step);
  if (NumberedName(prefix, found, suffix) != name) return absl::nullopt;
  return found;
}

}  // namespace sluice
