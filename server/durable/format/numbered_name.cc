#include "server/durable/format/numbered_name.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice {

std::string NumberedName(absl::string_view prefix, LifeAndStep numbers, absl::string_view suffix) {
  return absl::StrFormat("%s%06d-%012d%s", prefix, numbers.first.value(), numbers.second.value(),
                         suffix);
}

absl::optional<LifeAndStep> ParseNumberedName(absl::string_view prefix, absl::string_view name,
                                              absl::string_view suffix) {
  absl::string_view numbers = name;
  if (!absl::ConsumePrefix(&numbers, prefix) || !absl::ConsumeSuffix(&numbers, suffix)) {
    return absl::nullopt;
  }
  uint64_t life = 0;
  uint64_t step = 0;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(numbers, absl::MaxSplits('-', 1));
  if (!absl::SimpleAtoi(parts.first, &life) || !absl::SimpleAtoi(parts.second, &step)) {
    return absl::nullopt;
  }
  // Another way to write them would be the name of another file.
  const LifeAndStep found(life, step);
  if (NumberedName(prefix, found, suffix) != name) return absl::nullopt;
  return found;
}

}  // namespace sluice
