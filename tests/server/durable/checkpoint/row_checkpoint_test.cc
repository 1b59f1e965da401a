// Checkpoints of models with tables, of one server and of several.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/file_names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/checkpoint/checkpoint_store.h"
#include "server/durable/checkpoint/stripe_store.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/durable/striped_checkpoints.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

CheckpointName NameAt(uint64_t step) { return {Incarnation(1), Step(step)}; }

// What a job with tables saves, step after step.
class RowCheckpointTest : public ::testing::Test {
 protected:
  // A step makes, changes and removes rows.
  void MakeStep(uint64_t step) {
    const float value = static_cast<float>(step);
    for (RowId id = 0; id < 300; ++id) {
      if (id % 5 == step % 5) rows_.Make(step, {0, id}, {value, 1, 2, 3, 4, 5});
    }
    if (step > 1) rows_.Remove(step, {0, (step - 1) % 5});
    rows_.Make(step, {1, step}, {-value});
    rows_.Wait(step, {1, 1000 + step}, 1);
  }

  ShardCheckpoint At(uint64_t step) {
    ShardCheckpoint checkpoint = KnownCheckpoint(NameAt(step), layout_);
    const auto parameters = std::make_shared<Snapshot>();
    parameters->step = Step(step);
    parameters->values = FloatBuffer::Zeroed(layout_->size());
    parameters->rows = rows_.Snapshot();
    checkpoint.parameters = parameters;
    checkpoint.row_slots = SlotsOfTables();
    checkpoint.row_steps = step + 100;
    expected_[step] = rows_.rows();
    return checkpoint;
  }

  // Expects the rows of a step, on that server.
  template <typename Checkpoint>
  void ExpectRows(const absl::StatusOr<Checkpoint>& loaded, uint64_t step, StripePlace place) {
    ASSERT_THAT(loaded, IsOk());
    ASSERT_NE(loaded->rows, nullptr);
    const auto rows = RowsOfSaved(*loaded->rows);
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(RowsOfServer(*rows, place), RowsOfServer(expected_[step], place));
    EXPECT_EQ(loaded->row_slots, SlotsOfTables());
    EXPECT_EQ(loaded->row_steps, step + 100);
  }

  const std::shared_ptr<const Layout> layout_ = LayoutWithTables();
  RowsInMemory rows_;
  std::map<uint64_t, RowMap> expected_;
  FaultyFiles files_;
};

class OneServerRowsTest : public RowCheckpointTest {
 protected:
  OneServerRowsTest() {
    for (uint64_t step = 1; step <= 3; ++step) {
      MakeStep(step);
      EXPECT_THAT(store_.Save(At(step)), IsOk());
    }
  }

  // The rows of the newest checkpoint that is whole.
  void ExpectNewest(uint64_t step) {
    const auto newest = store_.LoadNewest();
    ASSERT_THAT(newest, IsOk());
    ASSERT_NE(*newest, nullptr);
    EXPECT_EQ((*newest)->step, Step(step));
    EXPECT_THAT(RowsOfSaved(*(*newest)->rows), IsOkAndHolds(expected_[step]));
  }

  CheckpointStore store_{files_, "d", 3};
};

TEST_F(OneServerRowsTest, EachCheckpointHasItsRows) {
  for (uint64_t step = 1; step <= 3; ++step) {
    ExpectRows(store_.Load(NameAt(step)), step, {});
  }
  const auto newest = store_.Load(NameAt(3));
  EXPECT_EQ(RowsOfSaved(*newest->rows)->size(), rows_.rows().size());
}

TEST_F(OneServerRowsTest, ADamagedFileOfRowsIsNamedAndTheCheckpointBeforeIsLoaded) {
  std::string& bytes = files_.BytesOf("d/rows-000001-000000000003.sluice");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  EXPECT_THAT(store_.Load(NameAt(3)),
              HasCode(absl::StatusCode::kDataLoss,
                      AllOf(HasSubstr("d/checkpoint-000001-000000000003.safetensors: "),
                            HasSubstr("d/rows-000001-000000000003.sluice: "))));
  ExpectNewest(2);
}

TEST_F(OneServerRowsTest, WithoutTheFileOfAllRowsNoCheckpointIsLoaded) {
  ASSERT_THAT(files_.Remove("d/rows-000001-000000000001.sluice"), IsOk());
  EXPECT_THAT(store_.LoadNewest(),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("000000000001.sluice is missing")));
}

TEST_F(OneServerRowsTest, WhereverTheMachineStopsACheckpointHasItsRows) {
  MakeStep(4);
  const ShardCheckpoint next = At(4);
  for (uint64_t operations = 0;; ++operations) {
    CheckpointStore store(files_, "d", 3);
    files_.StopAfter(operations);
    const bool saved = store.Save(next).ok();
    files_.StopAfter(absl::nullopt);
    files_.LoseUnsynced();
    ASSERT_THAT(store_.RemoveUnfinished(), IsOk());
    ExpectNewest(saved ? 4 : 3);
    if (saved) return;
  }
}

TEST_F(OneServerRowsTest, SeveralServersLoadWhatOneHasSaved) {
  const auto state = store_.Load(NameAt(3));
  ASSERT_THAT(state, IsOk());
  for (const uint32_t servers : {2, 3}) {
    for (uint32_t stripe = 0; stripe < servers; ++stripe) {
      const StripePlace place = {stripe, servers};
      ExpectRows(StripeStore(files_, "d", place).Load(SourceOf(*state), *layout_), 3, place);
    }
  }
}

// Three servers with one directory.
class ThreeServersRowsTest : public RowCheckpointTest {
 protected:
  void Save(uint64_t step) {
    const ShardCheckpoint checkpoint = At(step);
    std::vector<uint64_t> checksums;
    for (uint32_t i = 0; i < 3; ++i) {
      const auto saved =
          stripes_[i]->Save("job", NameAt(step), *layout_, StripeOf(checkpoint, {i, 3}));
      ASSERT_THAT(saved, IsOk());
      checksums.push_back(*saved);
    }
    ASSERT_THAT(store_.SaveStriped(checkpoint, checksums), IsOk());
  }

  ThreeServersRowsTest() {
    for (uint32_t i = 0; i < 3; ++i) {
      stripes_.push_back(std::make_unique<StripeStore>(files_, "d", StripePlace{i, 3}));
    }
    for (uint64_t step = 1; step <= 3; ++step) {
      MakeStep(step);
      Save(step);
    }
  }

  CheckpointSource Source(uint64_t step) {
    const auto state = store_.Load(NameAt(step));
    EXPECT_THAT(state, IsOk());
    return SourceOf(*state);
  }

  CheckpointStore store_{files_, "d", 2, 3};
  std::vector<std::unique_ptr<StripeStore>> stripes_;
};

TEST_F(ThreeServersRowsTest, AsManyServersLoadTheirOwn) {
  const CheckpointSource source = Source(3);
  for (uint32_t i = 0; i < 3; ++i) {
    const auto loaded = stripes_[i]->Load(source, *layout_);
    ExpectRows(loaded, 3, {i, 3});
    EXPECT_EQ(*RowsOfSaved(*loaded->rows), RowsOfServer(expected_[3], {i, 3}));
  }
}

TEST_F(ThreeServersRowsTest, AnotherNumberOfServersLoadsTheSameRows) {
  const CheckpointSource source = Source(3);
  for (const uint32_t servers : {1, 2, 4, 6}) {
    for (uint32_t i = 0; i < servers; ++i) {
      const StripePlace place = {i, servers};
      ExpectRows(StripeStore(files_, "d", place).Load(source, *layout_), 3, place);
    }
  }
  ExpectRows(CheckpointStore(files_, "d", 2).Load(NameAt(3)), 3, {});
}

TEST_F(ThreeServersRowsTest, ADamagedFileOfAnotherServerIsNamed) {
  const CheckpointSource source = Source(3);
  std::string& bytes = files_.BytesOf("d/rows-000001-000000000002-1-of-3.sluice");
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  EXPECT_THAT(stripes_[0]->Load(source, *layout_), IsOk());
  EXPECT_THAT(stripes_[1]->Load(source, *layout_),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("000000000002-1-of-3.sluice: ")));
  EXPECT_THAT(CheckpointStore(files_, "d", 2).Load(NameAt(3)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("000000000002-1-of-3.sluice: ")));
}

TEST_F(ThreeServersRowsTest, EachRemovesItsFilesThatNoCheckpointNeeds) {
  for (uint64_t step = 4; step <= 10; ++step) {
    MakeStep(step);
    Save(step);
    for (const auto& stripe : stripes_) stripe->RemoveOthers(*store_.List());
  }
  std::vector<std::string> rows;
  const auto files = files_.List("d");
  for (const std::string& file : *files) {
    if (RowsName::Parse(file).has_value()) rows.push_back(file);
  }
  EXPECT_THAT(rows, ::testing::SizeIs(2 * 3));  // of steps 9 and 10
  ExpectRows(CheckpointStore(files_, "d", 2).Load(NameAt(9)), 9, {});
  ExpectRows(CheckpointStore(files_, "d", 2).Load(NameAt(10)), 10, {});
}

}  // namespace
}  // namespace sluice
