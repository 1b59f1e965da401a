#include "tests/testing/durable/rows_in_memory.h"

#include "gtest/gtest.h"

namespace sluice {
namespace {

class MapSnapshot final : public RowSnapshot {
 public:
  MapSnapshot(RowMap rows, std::vector<std::pair<uint64_t, RowKey>> removed)
      : rows_(std::move(rows)), removed_(std::move(removed)) {}

  bool Holds(RowId /*id*/) const override { return true; }
  void Read(uint32_t /*table*/, absl::Span<const RowId> /*ids*/,
            absl::Span<float> /*to*/) const override {
    ADD_FAILURE() << "nobody reads single rows here";
  }

  void Find(uint32_t /*table*/, RowId /*id*/,
            absl::FunctionRef<void(const StoredRow&)> /*take*/) const override {
    ADD_FAILURE() << "nobody looks for single rows here";
  }

  void ForEachRow(uint32_t table, uint32_t bucket, Step after,
                  absl::FunctionRef<void(const StoredRow&)> take) const override {
    for (const auto& [key, row] : rows_) {
      if (key.first != table || BucketOf(key.second) != bucket || Step(row.touched) <= after) {
        continue;
      }
      const std::vector<float> copy = row.elements;  // valid during the call only
      take({key.second, Step(row.touched), row.touches, copy});
    }
  }

  void ForEachRemoved(uint32_t table, uint32_t bucket, Step after,
                      absl::FunctionRef<void(RowId)> take) const override {
    for (auto removed = removed_.rbegin(); removed != removed_.rend(); ++removed) {
      const RowKey& key = removed->second;
      if (key.first == table && BucketOf(key.second) == bucket && Step(removed->first) > after) {
        take(key.second);
      }
    }
  }

 private:
  const RowMap rows_;
  const std::vector<std::pair<uint64_t, RowKey>> removed_;
};

}  // namespace

void RowsInMemory::Make(uint64_t step, RowKey key, std::vector<float> elements) {
  rows_[key] = {step, 0, std::move(elements)};
}

void RowsInMemory::Wait(uint64_t step, RowKey key, uint32_t touches) {
  rows_[key] = {step, touches, {}};
}

void RowsInMemory::Remove(uint64_t step, RowKey key) {
  EXPECT_EQ(rows_.erase(key), 1u);
  removed_.emplace_back(step, key);
}

std::shared_ptr<const RowSnapshot> RowsInMemory::Snapshot() const {
  return std::make_shared<MapSnapshot>(rows_, removed_);
}

std::vector<RowId> IdsInBucket(uint32_t bucket, size_t count, RowId first) {
  std::vector<RowId> ids;
  for (RowId id = first; ids.size() < count; ++id) {
    if (BucketOf(id) == bucket) ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<RowMap> RowsOfSaved(const SavedRows& saved) {
  RowMap rows;
  const absl::Status read = saved.ForEach([&](uint32_t table, const StoredRow& row) {
    const OwnedRow owned = {row.touched.value(), row.touches,
                            std::vector<float>(row.elements.begin(), row.elements.end())};
    EXPECT_TRUE(rows.emplace(RowKey(table, row.id), owned).second) << "twice: " << row.id;
  });
  if (!read.ok()) return read;
  return rows;
}

RowMap RowsOfServer(const RowMap& rows, StripePlace place) {
  RowMap own;
  for (const auto& [key, row] : rows) {
    if (BucketOf(key.second) % place.stripes == place.stripe) own.emplace(key, row);
  }
  return own;
}

std::shared_ptr<const Layout> LayoutWithTables() {
  LayoutRange weight;
  weight.name = "weight";
  weight.shape = {3};
  weight.length = 3;
  TableSpec items;
  items.name = "items";
  items.width = 2;
  TableSpec users;
  users.name = "users";
  users.width = 1;
  auto layout = Layout::Create({weight}, {items, users});
  EXPECT_TRUE(layout.ok()) << layout.status();
  return std::make_shared<const Layout>(*std::move(layout));
}

std::vector<RowSlots> SlotsOfTables() { return {{"exp_avg", "exp_avg_sq"}, {}}; }

}  // namespace sluice
