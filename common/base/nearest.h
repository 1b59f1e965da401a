// Suggests a name for one that does not exist.

#ifndef SLUICE_COMMON_BASE_NEAREST_H_
#define SLUICE_COMMON_BASE_NEAREST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace sluice {

// The first of `names` of which the fewest letters must be changed, added or left out to make
// `name` (Levenshtein 1965); empty if there are none, or if more than `most` letters must.
std::string NearestOf(absl::string_view name, const std::vector<std::string>& names,
                      size_t most = SIZE_MAX);

// "; did you mean async?", for the end of an error about `word`: the nearest of `words`. Empty if
// none is so near that a typing error is likely.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& words);

}  // namespace sluice

#endif  // SLUICE_COMMON_BASE_NEAREST_H_
