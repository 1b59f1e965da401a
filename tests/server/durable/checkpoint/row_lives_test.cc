// Incarnations of servers with tables, one after the other, whose machine may stop at any operation
// and lose what was not synced. The checkpoint that is loaded has the rows that it was saved with,
// and is not older than the last that was saved.

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/seed.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

constexpr uint64_t kLives = 12;

class RowLives {
 public:
  explicit RowLives(uint64_t seed) : random_(seed), servers_(1 + seed % 3) {}

  void Play() {
    for (uint64_t life = 1; life <= kLives; ++life) {
      Live(Incarnation(life));
      files_.StopAfter(absl::nullopt);
      files_.Crash(random_);
      Recover();
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  using Saved = std::pair<uint64_t, uint64_t>;  // incarnation and step

  void Live(Incarnation incarnation) {
    CheckpointStore store(files_, "d", 2, servers_);
    std::vector<std::unique_ptr<StripeStore>> stripes;
    for (uint32_t i = 0; i < servers_; ++i) {
      stripes.push_back(std::make_unique<StripeStore>(files_, "d", StripePlace{i, servers_}));
    }
    files_.StopAfter(random_() % 1500);
    while (!files_.stopped()) {
      ++step_;
      ChangeRows();
      if (random_() % 3 > 0) continue;
      Save({incarnation, Step(step_)}, store, stripes);
    }
  }

  void ChangeRows() {
    for (int change = 0; change < 10; ++change) {
      const RowKey key = {static_cast<uint32_t>(random_() % 2), random_() % 40};
      if (rows_.rows().count(key) > 0 && random_() % 2 == 0) {
        rows_.Remove(step_, key);
      } else {
        const float value = static_cast<float>(random_() % 1000);
        rows_.Make(step_, key, std::vector<float>(key.first == 0 ? 6 : 1, value));
      }
    }
  }

  void Save(const CheckpointName& name, CheckpointStore& store,
            const std::vector<std::unique_ptr<StripeStore>>& stripes) {
    ShardCheckpoint checkpoint = KnownCheckpoint(name, LayoutWithTables());
    const auto parameters = std::make_shared<Snapshot>();
    parameters->step = name.step;
    parameters->values = FloatBuffer::Zeroed(checkpoint.layout->size());
    parameters->rows = rows_.Snapshot();
    checkpoint.parameters = parameters;
    checkpoint.row_slots = SlotsOfTables();
    const Saved key = {name.incarnation.value(), step_};
    tried_[key] = rows_.rows();
    if (!SaveFiles(name, checkpoint, store, stripes).ok()) return;
    last_ = key;
    const auto whole = store.List();
    if (!whole.ok()) return;
    for (const auto& stripe : stripes) stripe->RemoveOthers(*whole);
  }

  absl::Status SaveFiles(const CheckpointName& name, const ShardCheckpoint& checkpoint,
                         CheckpointStore& store,
                         const std::vector<std::unique_ptr<StripeStore>>& stripes) {
    if (servers_ == 1) return store.Save(checkpoint).status();
    std::vector<uint64_t> checksums;
    for (uint32_t i = 0; i < servers_; ++i) {
      const auto saved =
          stripes[i]->Save("job", name, *checkpoint.layout, StripeOf(checkpoint, {i, servers_}));
      if (!saved.ok()) return saved.status();
      checksums.push_back(*saved);
    }
    return store.SaveStriped(checkpoint, checksums).status();
  }

  // One server loads the rows of all, and the next servers, perhaps of another number, go on.
  void Recover() {
    CheckpointStore store(files_, "d", 2);
    ASSERT_THAT(store.RemoveUnfinished(), IsOk());
    const auto loaded = store.LoadNewest();
    ASSERT_THAT(loaded, IsOk());
    Saved found = {0, 0};
    if (*loaded != nullptr) {
      found = {(*loaded)->incarnations.current().value(), (*loaded)->step.value()};
      const auto rows = RowsOfSaved(*(*loaded)->rows);
      EXPECT_THAT(rows, IsOkAndHolds(tried_[found]));
      rows_ = RowsInMemory(*rows);
    } else {
      rows_ = RowsInMemory();
    }
    EXPECT_GE(found, last_);
    last_ = found;
    step_ = found.second;
    servers_ = 1 + random_() % 3;
  }

  std::mt19937_64 random_;
  uint32_t servers_;
  FaultyFiles files_;
  RowsInMemory rows_;
  uint64_t step_ = 0;
  std::map<Saved, RowMap> tried_;
  Saved last_ = {0, 0};  // the last that was saved, or loaded
};

TEST(RowLivesTest, WhatIsLoadedHasTheRowsThatWereSaved) {
  SCOPED_TRACE(HowToRepeat());
  for (uint64_t job = 0; job < 8; ++job) {
    SCOPED_TRACE(absl::StrCat("job ", job));
    RowLives(1000 * RunSeed() + job).Play();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
