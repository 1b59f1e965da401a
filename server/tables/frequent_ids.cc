#include "server/tables/frequent_ids.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace sluice {

void FrequentIds::Add(RowId id) {
  const auto known = places_.find(id);
  if (known != places_.end()) {
    ++counted_[known->second].count;
  } else if (counted_.size() < most_) {
    places_.emplace(id, counted_.size());
    counted_.push_back({id, 1, 0});
  } else {
    const size_t place = Lowest();
    Counted& lowest = counted_[place];
    places_.erase(lowest.id);
    places_.emplace(id, place);
    lowest = {id, lowest.count + 1, lowest.count};
  }
}

size_t FrequentIds::Lowest() const {
  const auto lowest =
      std::min_element(counted_.begin(), counted_.end(),
                       [](const Counted& a, const Counted& b) { return a.count < b.count; });
  return static_cast<size_t>(lowest - counted_.begin());
}

std::vector<FrequentIds::Counted> FrequentIds::Top(size_t most) const {
  std::vector<Counted> top;
  std::copy_if(counted_.begin(), counted_.end(), std::back_inserter(top),
               [](const Counted& one) { return one.too_high <= one.count / 2; });
  std::sort(top.begin(), top.end(), [](const Counted& a, const Counted& b) {
    return std::tie(b.count, a.id) < std::tie(a.count, b.id);
  });
  if (top.size() > most) top.resize(most);
  return top;
}

}  // namespace sluice
