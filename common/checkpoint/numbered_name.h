// Names of files that belong to one incarnation and one step:
// "<prefix><incarnation>-<step><suffix>". The numbers have leading zeros, so that the names sort
// like the numbers.

#ifndef SLUICE_COMMON_CHECKPOINT_NUMBERED_NAME_H_
#define SLUICE_COMMON_CHECKPOINT_NUMBERED_NAME_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"

namespace sluice {

using IncarnationAndStep = std::pair<Incarnation, Step>;

std::string NumberedName(absl::string_view prefix, IncarnationAndStep numbers,
                         absl::string_view suffix = "");

// The numbers in a name; absent if NumberedName() does not return that name.
absl::optional<IncarnationAndStep> ParseNumberedName(absl::string_view prefix,
                                                     absl::string_view name,
                                                     absl::string_view suffix = "");

// "-<stripe>-of-<stripes>" for the files of one of several servers; nothing if there is one.
std::string PlaceSuffix(uint32_t stripe, uint32_t stripes);

// The stripe, and the number of stripes, that such a name ends with; absent if it does not.
absl::optional<std::pair<uint32_t, uint32_t>> FindPlaceSuffix(absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_NUMBERED_NAME_H_
