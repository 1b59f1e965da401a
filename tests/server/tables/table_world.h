// The tables of one server in tests, or of several servers that are asked together:
//
//   TableWorld world({TableOf("items", 2)});
//   world.Push({{0, {7, 9}}}, {1, 2, 3, 4});
//   world.MakeStep();
//   EXPECT_THAT(world.Row(0, 9), ElementsAre(-3, -4));

#ifndef SLUICE_TESTS_SERVER_TABLES_TABLE_WORLD_H_
#define SLUICE_TESTS_SERVER_TABLES_TABLE_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/base/thread_pool.h"
#include "gtest/gtest.h"
#include "server/tables/row_tables.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {

// A table whose rows begin as zeros.
inline TableSpec TableOf(const std::string& name, uint32_t width) {
  TableSpec table;
  table.name = name;
  table.width = width;
  return table;
}

// A complete push of rows, in chunks of at most `chunk` elements.
inline std::unique_ptr<StagedRows> StagedRowsOf(std::shared_ptr<const Layout> layout,
                                                const std::vector<RowIds>& ids,
                                                const Values& values, size_t chunk = 1000000) {
  uint64_t bytes = 0;
  for (const RowIds& entry : ids) {
    bytes += RowBytes(entry.ids.size(), layout->tables()[entry.table].width);
  }
  auto staged = std::make_unique<StagedRows>(std::move(layout), bytes);
  for (const RowIds& entry : ids) EXPECT_THAT(staged->AddIds(entry), IsOk());
  for (size_t at = 0; at < values.size(); at += chunk) {
    TensorChunk part = ChunkOf(at, absl::MakeConstSpan(values).subspan(at, chunk));
    EXPECT_THAT(StageChunk(
                    std::move(part), [](uint64_t) { return std::string(); }, Staging(),
                    [&](const TensorChunk& arrived) { return staged->Reserve(arrived); },
                    [&](absl::StatusOr<TensorChunk> checked) {
                      if (!checked.ok()) return checked.status();
                      staged->Place(*std::move(checked));
                      return absl::OkStatus();
                    }),
                IsOk());
  }
  EXPECT_THAT(staged->CheckComplete(), IsOk());
  staged->Seal();
  return staged;
}

// The learning rate is 1. By default, a step subtracts the sum of the gradients.
class TableWorld {
 public:
  struct Options {
    OptimizerConfig optimizer = {SgdOptions()};
    uint32_t servers = 1;
    uint32_t threads = 1;
    TableMemory memory = {};
  };

  explicit TableWorld(std::vector<TableSpec> tables) : TableWorld(std::move(tables), Options()) {}
  TableWorld(std::vector<TableSpec> tables, const Options& options)
      : layout_(std::make_shared<const Layout>(
            *Layout::Create(LayoutOf({{"bias"}}).ranges(), std::move(tables)))),
        pool_(options.threads),
        rates_(1 + options.optimizer.groups.size() + options.optimizer.tables.size(), 1.0) {
    for (uint32_t server = 0; server < options.servers; ++server) {
      servers_.push_back(std::make_unique<RowTables>(
          layout_, options.optimizer, RowPlace{server, options.servers}, options.memory, pool_));
    }
  }

  // Begins at step 0, unless Start() was called.
  void Start(uint64_t step = 0, uint64_t optimizer_steps = 0) {
    step_ = step;
    latest_.clear();
    for (const auto& server : servers_) {
      latest_.push_back(server->Start(Step(step), optimizer_steps));
    }
  }

  // Adds the gradients of a push. Their rows come one after the other.
  void Push(const std::vector<RowIds>& ids, const Values& values, float weight = 1, float share = 1,
            size_t chunk = 1000000) {
    if (latest_.empty()) Start();
    const auto staged = StagedRowsOf(layout_, ids, values, chunk);
    for (const auto& server : servers_) server->Add(*staged, weight, share);
  }

  // Prepares a step. Returns the first bad row of any server.
  absl::optional<BadRow> Prepare(float divisor = 1,
                                 absl::optional<float> row_scale = absl::nullopt) {
    if (latest_.empty()) Start();
    RowStep step;
    step.optimizer.divisor = divisor;
    step.optimizer.learning_rates = rates_;
    step.row_scale = row_scale;
    absl::optional<BadRow> first;
    for (const auto& server : servers_) {
      const absl::optional<BadRow> bad = server->Prepare(step);
      if (bad.has_value() && (!first.has_value() || *bad < *first)) first = bad;
    }
    return first;
  }

  // Makes the step that is prepared.
  void Make() {
    ++step_;
    checksums_.assign(servers_.size(), 0);
    for (size_t i = 0; i < servers_.size(); ++i) {
      latest_[i] = servers_[i]->Make(Step(step_), &checksums_[i]);
      servers_[i]->Clear();
    }
  }

  // Makes a step of all gradients that were pushed since the last one.
  void MakeStep(float divisor = 1, absl::optional<float> row_scale = absl::nullopt) {
    EXPECT_FALSE(Prepare(divisor, row_scale).has_value());
    Make();
  }

  // Abandons the step.
  void Copy() {
    ++step_;
    for (size_t i = 0; i < servers_.size(); ++i) {
      latest_[i] = servers_[i]->Copy(Step(step_));
      servers_[i]->Clear();
    }
  }

  // Snapshots of all servers.
  using Snapshots = std::vector<std::shared_ptr<const RowSnapshot>>;
  const Snapshots& latest() const { return latest_; }

  Values Row(uint32_t table, RowId id) const { return Row(latest_, table, id); }
  Values Row(const Snapshots& snapshots, uint32_t table, RowId id) const {
    return Rows(snapshots, table, {id});
  }
  Values Rows(const Snapshots& snapshots, uint32_t table, const std::vector<RowId>& ids) const {
    const size_t width = layout_->tables()[table].width;
    Values rows(ids.size() * width);
    for (size_t i = 0; i < ids.size(); ++i) {
      const RowSnapshot& snapshot = *snapshots[BucketOf(ids[i]) % servers_.size()];
      snapshot.Read(table, absl::MakeConstSpan(ids).subspan(i, 1),
                    absl::MakeSpan(rows).subspan(i * width, width));
    }
    return rows;
  }

  RowTables& server(size_t index = 0) { return *servers_[index]; }
  size_t servers() const { return servers_.size(); }
  TableStatus status(size_t table) const {
    TableStatus all;
    for (const auto& server : servers_) all = all + server->Describe()[table];
    return all;
  }
  const std::shared_ptr<const Layout>& layout() const { return layout_; }
  uint64_t step() const { return step_; }
  const std::vector<uint64_t>& checksums() const { return checksums_; }
  void set_rates(std::vector<double> rates) { rates_ = std::move(rates); }

 private:
  const std::shared_ptr<const Layout> layout_;
  ThreadPool pool_;
  std::vector<double> rates_;
  std::vector<std::unique_ptr<RowTables>> servers_;
  uint64_t step_ = 0;
  Snapshots latest_;
  std::vector<uint64_t> checksums_;
};

// A row or waiting id: its table, id, latest step, touches and elements.
using RowOfTable = std::tuple<uint32_t, RowId, uint64_t, uint32_t, Values>;

// All that a step after `after` has touched, of two tables, for comparison. Those of a server come
// in the order of tables, buckets and ids.
inline std::vector<RowOfTable> AllRows(const TableWorld::Snapshots& snapshots, uint64_t after = 0) {
  std::vector<RowOfTable> all;
  for (const auto& snapshot : snapshots) {
    for (uint32_t table = 0; table < 2; ++table) {
      for (uint32_t bucket = 0; bucket < kRowBuckets; ++bucket) {
        snapshot->ForEachRow(table, bucket, Step(after), [&](const StoredRow& row) {
          all.emplace_back(table, row.id, row.touched.value(), row.touches, ValuesOf(row.elements));
        });
      }
    }
  }
  return all;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_SERVER_TABLES_TABLE_WORLD_H_
