#include "tests/simulation/twin_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/protocol/protocol_types.h"

namespace sluice {
namespace {

constexpr uint64_t kMostRows = 12;
constexpr uint32_t kCrowded = 5;  // so that each of five servers has a bucket

// In the first so many buckets.
std::vector<RowId>* MakeIds(uint32_t buckets) {
  auto* const ids = new std::vector<RowId>;
  for (RowId id = 0; ids->size() < kMostRows; id += 0x9e3779b97f4a7c15) {
    if (BucketOf(id) < buckets) ids->push_back(id);
  }
  return ids;
}

const std::vector<RowId>* Ids(bool crowded) {
  static const auto* const spread = MakeIds(kRowBuckets);
  static const auto* const close = MakeIds(kCrowded);
  return crowded ? close : spread;
}

}  // namespace

uint64_t TwinRows::CountAt(uint32_t server) const {
  return static_cast<uint64_t>(std::count_if(
      rows_.begin(), rows_.end(), [&](uint32_t row) { return ServerOf(row) == server; }));
}

Layout TwinRows::Add(const Layout& vector, uint32_t width) {
  TableSpec twin;
  twin.name = "twin";
  twin.width = width;
  return *Layout::Create(vector.ranges(), {twin});
}

TwinRows::TwinRows(const Layout& layout, uint32_t servers, bool crowded)
    : servers_(servers), ids_(Ids(crowded)) {
  if (layout.tables().empty()) return;
  width_ = layout.tables().front().width;
  const uint64_t rows = std::min(kMostRows, layout.ranges().front().length / width_);
  for (uint32_t row = 0; row < rows; ++row) rows_.push_back(row);
  std::sort(rows_.begin(), rows_.end(),
            [this](uint32_t a, uint32_t b) { return IdOf(a) < IdOf(b); });
}

void TwinRows::Clear(Values* parameters) const {
  std::fill_n(parameters->begin(), rows_.size() * width_, 0.0f);
}

std::vector<uint32_t> TwinRows::RowsIn(const Values& gradient) const {
  std::vector<uint32_t> rows;
  for (const uint32_t row : rows_) {
    const auto begin = gradient.begin() + row * width_;
    if (std::any_of(begin, begin + width_, [](float value) { return value != 0; })) {
      rows.push_back(row);
    }
  }
  return rows;
}

uint64_t TwinRows::BytesOf(const Values& gradient) const {
  return RowBytes(RowsIn(gradient).size(), width_);
}

absl::Status TwinRows::Send(const Values& gradient, uint32_t server, uint64_t offset,
                            PendingPush& push) const {
  RowIds ids;
  Values values;
  for (const uint32_t row : RowsIn(gradient)) {
    if (ServerOf(row) != server) continue;
    ids.ids.push_back(IdOf(row));
    const auto begin = gradient.begin() + row * width_;
    values.insert(values.end(), begin, begin + width_);
  }
  if (values.empty()) return absl::OkStatus();
  const absl::Status added = push.AddIds(std::move(ids));
  return added.ok() ? push.Add(ChunkOf(offset, values)) : added;
}

Values TwinRows::Of(const Values& gradient, uint32_t servers) const {
  Values values;
  for (const uint32_t row : RowsIn(gradient)) {
    if (ServerOf(row) >= servers) continue;
    const auto begin = gradient.begin() + row * width_;
    values.insert(values.end(), begin, begin + width_);
  }
  return values;
}

std::string TwinRows::Compare(absl::Span<const std::shared_ptr<const Snapshot>> servers,
                              const Values& vector) const {
  for (const uint32_t row : rows_) {
    Values found(width_);
    const RowSnapshot& rows = *servers[ServerOf(row)]->rows;
    rows.Read(0, {IdOf(row)}, absl::MakeSpan(found));
    if (std::equal(found.begin(), found.end(), vector.begin() + row * width_)) continue;
    return absl::StrCat("row ", row, " of the twin table begins with ", found.front(),
                        ", expected ", vector[row * width_]);
  }
  return "";
}

}  // namespace sluice
