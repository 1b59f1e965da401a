#include "worker/connection/row_gradient.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// Appends the rows of one table to those of their servers.
class Splitter {
 public:
  Splitter(uint32_t servers, std::vector<RowsOfServer>& split)
      : servers_(servers), split_(split), counts_(servers) {}

  void Add(const RowIds& of_table) {
    for (const RowId id : of_table.ids) ++counts_[ServerOf(id)];
    for (uint32_t server = 0; server < servers_; ++server) {
      if (counts_[server] == 0) continue;
      split_[server].rows.push_back({of_table.table, {}});
      split_[server].rows.back().ids.reserve(counts_[server]);
      counts_[server] = 0;
    }
    for (const RowId id : of_table.ids) {
      RowsOfServer& server = split_[ServerOf(id)];
      server.rows.back().ids.push_back(id);
      server.places.push_back(place_++);
    }
  }

 private:
  uint32_t ServerOf(RowId id) const { return BucketOf(id) % servers_; }

  const uint32_t servers_;
  std::vector<RowsOfServer>& split_;
  std::vector<size_t> counts_;
  uint64_t place_ = 0;
};

uint64_t WidthOf(const RowGradient& gradient) {
  const size_t rows = gradient.rows.ids.size();
  return rows == 0 ? 0 : gradient.values.values.size() / rows;
}

// Those rows of `gradient` that `places` names.
SharedFloats Pick(const RowGradient& gradient, absl::Span<const uint64_t> places) {
  const uint64_t width = WidthOf(gradient);
  std::vector<float> picked(places.size() * width);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto from = gradient.values.values.subspan(places[i] * width, width);
    std::copy(from.begin(), from.end(), picked.begin() + static_cast<ptrdiff_t>(i * width));
  }
  return Share(std::move(picked));
}

}  // namespace

uint64_t ElementsOf(const std::vector<RowIds>& rows, const std::vector<TableSpec>& tables) {
  uint64_t elements = 0;
  for (const RowIds& of_table : rows)
    elements += of_table.ids.size() * tables[of_table.table].width;
  return elements;
}

uint64_t ElementsOf(const RowGradients& gradients) {
  uint64_t elements = 0;
  for (const RowGradient& gradient : gradients) elements += gradient.values.values.size();
  return elements;
}

uint64_t RowBytesOf(const RowGradients& gradients) {
  uint64_t rows = 0;
  for (const RowGradient& gradient : gradients) rows += gradient.rows.ids.size();
  return rows * sizeof(RowId) + ElementsOf(gradients) * sizeof(float);
}

std::vector<std::vector<RowIds>> PartsOf(const std::vector<RowIds>& rows, size_t most) {
  std::vector<std::vector<RowIds>> parts;
  size_t room = 0;  // in the last part
  for (const RowIds& of_table : rows) {
    const absl::Span<const RowId> ids = of_table.ids;
    for (size_t begin = 0; begin < ids.size();) {
      if (room == 0) parts.emplace_back();
      if (room == 0) room = most;
      const auto taken = ids.subspan(begin, room);
      parts.back().push_back({of_table.table, {taken.begin(), taken.end()}});
      begin += taken.size();
      room -= taken.size();
    }
  }
  return parts;
}

std::vector<RowsOfServer> SplitRows(const std::vector<RowIds>& rows, uint32_t servers) {
  std::vector<RowsOfServer> split(servers);
  Splitter splitter(servers, split);
  for (const RowIds& of_table : rows) splitter.Add(of_table);
  return split;
}

std::vector<RowGradients> SplitRows(const RowGradients& gradients, uint32_t servers) {
  std::vector<RowGradients> split(servers);
  for (const RowGradient& gradient : gradients) {
    std::vector<RowsOfServer> of_table = SplitRows(std::vector<RowIds>{gradient.rows}, servers);
    for (uint32_t server = 0; server < servers; ++server) {
      if (of_table[server].rows.empty()) continue;
      const SharedFloats values = Pick(gradient, of_table[server].places);
      split[server].push_back(
          {std::move(of_table[server].rows.front()), values, gradient.encoding});
    }
  }
  return split;
}

}  // namespace sluice
