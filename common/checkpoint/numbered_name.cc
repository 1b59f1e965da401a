#include "common/checkpoint/numbered_name.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

std::string PlaceSuffix(uint32_t stripe, uint32_t stripes) {
  return stripes == 1 ? "" : absl::StrCat("-", stripe, "-of-", stripes);
}

absl::optional<std::pair<uint32_t, uint32_t>> FindPlaceSuffix(absl::string_view name) {
  const std::vector<absl::string_view> words = absl::StrSplit(name, '-');
  const size_t count = words.size();
  std::pair<uint32_t, uint32_t> place;
  const bool found = count > 3 && absl::SimpleAtoi(words[count - 3], &place.first) &&
                     absl::SimpleAtoi(words[count - 1], &place.second) &&
                     absl::EndsWith(name, PlaceSuffix(place.first, place.second));
  if (!found || place.first >= place.second || place.second == 1) return absl::nullopt;
  return place;
}

}  // namespace sluice
