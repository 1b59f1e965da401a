#include "server/tables/past_rows.h"

#include <utility>

namespace sluice {
namespace {

// A row, and where it was kept.
struct Kept {
  PastRow row;
  const PastRows* in = nullptr;
};

bool ById(const Kept& a, const Kept& b) { return a.row.id < b.row.id; }

// Joins what several steps have kept of one bucket. Of an id that is there twice, the first is
// older.
PastRows Joined(absl::Span<const PastRows* const> parts) {
  std::vector<Kept> kept;
  for (const PastRows* const part : parts) {
    for (const PastRow& row : part->rows) kept.push_back({row, part});
  }
  std::stable_sort(kept.begin(), kept.end(), ById);
  const auto end = std::unique(kept.begin(), kept.end(),
                               [](const Kept& a, const Kept& b) { return a.row.id == b.row.id; });
  kept.erase(end, kept.end());
  PastRows joined(parts[0]->key, parts[0]->elements);
  const auto rows = std::count_if(kept.begin(), kept.end(),
                                  [](const Kept& one) { return one.row.before == StoredAs::kRow; });
  PastMemory memory;
  memory.floats = FloatBuffer(static_cast<size_t>(rows) * joined.elements);
  uint32_t at = 0;
  for (const Kept& one : kept) {
    memory.rows.push_back(one.row);
    if (one.row.before != StoredAs::kRow) continue;
    const absl::Span<const float> elements = one.in->ElementsOf(one.row);
    std::copy(elements.begin(), elements.end(), memory.floats.from(at * joined.elements));
    memory.rows.back().at = at++;
  }
  joined.Own(std::move(memory));
  joined.made = true;
  return joined;
}

}  // namespace

void PastRows::Own(PastMemory memory) {
  own = std::move(memory);
  rows = absl::MakeSpan(own.rows);
  floats = own.floats.span();
}

std::shared_ptr<PastStep> Merged(const PastStep& older, const PastStep& newer) {
  std::vector<const PastRows*> parts;
  for (const PastStep* const step : {&older, &newer}) {
    for (const PastRows& rows : step->buckets) parts.push_back(&rows);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PastRows* a, const PastRows* b) { return a->key < b->key; });
  auto merged = std::make_shared<PastStep>();
  merged->step = newer.step;
  for (size_t begin = 0; begin < parts.size();) {
    size_t end = begin + 1;
    while (end < parts.size() && parts[end]->key == parts[begin]->key) ++end;
    merged->buckets.push_back(Joined(absl::MakeConstSpan(parts).subspan(begin, end - begin)));
    merged->rows += merged->buckets.back().rows.size();
    begin = end;
  }
  return merged;
}

}  // namespace sluice
