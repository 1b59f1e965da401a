#include "worker/torch/tables/unique_ids.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace sluice {
namespace {

// An id, and its number in the order of the first appearances.
struct FirstSeen {
  int64_t id;
  int64_t number;
};

absl::Span<int64_t> NumbersOf(const torch::Tensor& tensor) {
  return {tensor.data_ptr<int64_t>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

// A batch has far fewer different ids than ids, so only those are sorted.
UniqueIds Unique(const torch::Tensor& ids) {
  const torch::Tensor all = ids.to(torch::kCPU).contiguous();
  UniqueIds unique;
  unique.places = torch::empty_like(all);
  const absl::Span<int64_t> places = NumbersOf(unique.places);
  absl::flat_hash_map<int64_t, int64_t> numbers;
  std::vector<FirstSeen> seen;
  size_t at = 0;
  for (const int64_t id : NumbersOf(all)) {
    const auto number = static_cast<int64_t>(seen.size());
    const auto [found, is_new] = numbers.try_emplace(id, number);
    if (is_new) seen.push_back({id, number});
    places[at++] = found->second;
  }
  std::sort(seen.begin(), seen.end(),
            [](const FirstSeen& a, const FirstSeen& b) { return a.id < b.id; });
  unique.ids = torch::empty({static_cast<int64_t>(seen.size())}, torch::kInt64);
  std::vector<int64_t> sorted(seen.size());  // the place of each number
  for (size_t i = 0; i < seen.size(); ++i) {
    NumbersOf(unique.ids)[i] = seen[i].id;
    sorted[static_cast<size_t>(seen[i].number)] = static_cast<int64_t>(i);
  }
  for (int64_t& place : places) place = sorted[static_cast<size_t>(place)];
  return unique;
}

}  // namespace sluice
