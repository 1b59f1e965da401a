#include "server/state/table_status.h"

#include <algorithm>
#include <tuple>

namespace sluice {

TableStatus operator+(const TableStatus& a, const TableStatus& b) {
  TableStatus sum = {a.rows + b.rows,   a.on_disk + b.on_disk, a.waiting + b.waiting,
                     a.bytes + b.bytes, a.dropped + b.dropped, a.removed + b.removed,
                     a.reads + b.reads, a.hits + b.hits,       a.ages + b.ages,
                     a.hottest};
  sum.hottest.insert(sum.hottest.end(), b.hottest.begin(), b.hottest.end());
  std::sort(sum.hottest.begin(), sum.hottest.end(), [](const HotRow& x, const HotRow& y) {
    return std::tie(y.reads, x.id) < std::tie(x.reads, y.id);
  });
  if (sum.hottest.size() > HotRow::kMost) sum.hottest.resize(HotRow::kMost);
  return sum;
}

}  // namespace sluice
