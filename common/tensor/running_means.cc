#include "common/tensor/running_means.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"

namespace sluice {
namespace {

absl::Status Bad(const RunningMean& mean, absl::string_view found) {
  return MakeError(Reason::kBadArgument, absl::StrCat("the running means of elements ", mean.begin,
                                                      " to ", mean.end, " ", found));
}

}  // namespace

void Append(const RunningMean& mean, RunningMeans* means) {
  const bool joins =
      !means->empty() && means->back().end == mean.begin && means->back().decay == mean.decay;
  if (joins) {
    means->back().end = mean.end;
  } else {
    means->push_back(mean);
  }
}

absl::Status CheckRunningMeans(const RunningMeans& means) {
  uint64_t free = 0;  // the first element that the next may have
  for (const RunningMean& mean : means) {
    if (mean.begin >= mean.end) return Bad(mean, "have no element, expected at least one");
    if (mean.begin < free) {
      return Bad(mean, absl::StrCat("begin before ", free,
                                    ", where those before them end; expected ascending ones"));
    }
    if (!(mean.decay >= 0 && mean.decay <= 1)) {
      return Bad(mean, absl::StrCat("have decay ", mean.decay, ", expected 0 to 1"));
    }
    free = mean.end;
  }
  return absl::OkStatus();
}

absl::Status CheckFits(const RunningMeans& means, const Layout& layout) {
  auto range = layout.ranges().begin();
  for (const RunningMean& mean : means) {
    if (mean.end > layout.size()) {
      return Bad(mean, absl::StrCat("are not in the vector, which has ", layout.size()));
    }
    range =
        std::lower_bound(range, layout.ranges().end(), mean.begin,
                         [](const LayoutRange& r, uint64_t offset) { return r.offset < offset; });
    const bool begins = range != layout.ranges().end() && range->offset == mean.begin;
    for (; begins && range != layout.ranges().end() && range->offset < mean.end; ++range) {
      if (range->kind == RangeKind::kStatistic) continue;
      return Bad(mean, absl::StrCat("have elements of \"", range->name, "\", which is ",
                                    RangeKindName(range->kind), ", expected ",
                                    RangeKindName(RangeKind::kStatistic)));
    }
    if (!begins || std::prev(range)->end() != mean.end) {
      return Bad(mean, "are a part of a tensor, expected whole tensors");
    }
  }
  return absl::OkStatus();
}

RunningMeans OfStripe(const RunningMeans& means, const Stripes& stripes, uint32_t stripe) {
  RunningMeans here;
  for (const RunningMean& mean : means) {
    const uint64_t end = std::min(mean.end, stripes.size());
    const RunningMean part = {stripes.Before(stripe, std::min(mean.begin, end)),
                              stripes.Before(stripe, end), mean.decay};
    if (part.begin < part.end) here.push_back(part);
  }
  return here;
}

// Both lists are cut where either of them begins or ends something. Most pushes name the same
// elements.
void MeanOfRunningMeans::Add(const RunningMeans& means, float weight) {
  const bool same = std::equal(means.begin(), means.end(), parts_.begin(), parts_.end(),
                               [](const RunningMean& mean, const Part& part) {
                                 return mean.begin == part.begin && mean.end == part.end;
                               });
  if (same) {
    for (size_t i = 0; i < means.size(); ++i) {
      parts_[i].decay += static_cast<double>(weight) * means[i].decay;
    }
    return;
  }
  std::vector<uint64_t> cuts;
  for (const Part& part : parts_) cuts.insert(cuts.end(), {part.begin, part.end});
  for (const RunningMean& mean : means) cuts.insert(cuts.end(), {mean.begin, mean.end});
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Part> sum;
  auto old = parts_.begin();
  auto added = means.begin();
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const uint64_t begin = cuts[i];
    while (old != parts_.end() && old->end <= begin) ++old;
    while (added != means.end() && added->end <= begin) ++added;
    const bool in_old = old != parts_.end() && old->begin <= begin;
    const bool in_added = added != means.end() && added->begin <= begin;
    if (!in_old && !in_added) continue;
    const double had = in_old ? old->decay : 0;
    const double gets = in_added ? static_cast<double>(weight) * added->decay : 0;
    sum.push_back({begin, cuts[i + 1], had + gets});
  }
  parts_ = std::move(sum);
}

RunningMeans MeanOfRunningMeans::Get(float divisor) const {
  RunningMeans means;
  for (const Part& part : parts_) {
    const auto decay = static_cast<float>(part.decay / divisor);
    Append({part.begin, part.end, std::min(decay, 1.0f)}, &means);
  }
  return means;
}

}  // namespace sluice
