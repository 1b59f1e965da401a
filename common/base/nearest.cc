#include "common/base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestOf(absl::string_view name, const std::vector<std::string>& names, size_t most) {
  const auto nearest = std::min_element(names.begin(), names.end(),
                                        [name](const std::string& a, const std::string& b) {
                                          return Distance(name, a) < Distance(name, b);
                                        });
  return nearest == names.end() || Distance(name, *nearest) > most ? "" : *nearest;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& words) {
  const std::string nearest = NearestOf(word, words, 1 + word.size() / 4);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

}  // namespace sluice
