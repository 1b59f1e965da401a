// Names of files that are of one life of the server and one step: "<prefix><life>-<step><suffix>",
// with so many digits that they sort as the numbers do.

#ifndef SLUICE_SERVER_DURABLE_FORMAT_NUMBERED_NAME_H_
#define SLUICE_SERVER_DURABLE_FORMAT_NUMBERED_NAME_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/ids.h"

namespace sluice {

using LifeAndStep = std::pair<Incarnation, Step>;

std::string NumberedName(absl::string_view prefix, LifeAndStep numbers,
                         absl::string_view suffix = "");

// Absent if `name` is none that NumberedName() gives.
absl::optional<LifeAndStep> ParseNumberedName(absl::string_view prefix, absl::string_view name,
                                              absl::string_view suffix = "");

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FORMAT_NUMBERED_NAME_H_
