#include "server/durable/rows/saved_tables.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/reading/row_chain.h"
#include "common/storage/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/format/directory_sync.h"
#include "server/durable/rows/rows_store.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/durable/rows_in_memory.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

class SavedTablesTest : public ::testing::Test {
 protected:
  std::unique_ptr<RowChain> Saved() {
    DirectorySync sync(files_, "d");
    RowsStore store(files_, "d", {}, sync);
    const auto layout = LayoutWithTables();
    const std::vector<RowSlots> slots = SlotsOfTables();
    const auto saved =
        store.Save({"job", Incarnation(1), Step(1), *layout, slots}, *rows_.Snapshot());
    EXPECT_THAT(saved, IsOk());
    auto chain = RowChain::Open(files_, {{"d"}, "job", Incarnation(1), Step(1), {{{}, *saved}}},
                                *layout, false);
    EXPECT_THAT(chain, IsOk());
    return *std::move(chain);
  }

  // The header of the exported table; its tensors' bytes are in data_.
  SafeTensorsHeader Export(uint32_t table, uint32_t width) {
    const auto file = files_.Create("d/out");
    EXPECT_THAT(ExportTable(*Saved(), table, width, SlotsOfTables()[table], **file), IsOk());
    const std::string& bytes = files_.BytesOf("d/out");
    const auto length = DecodeSafeTensorsPrefix(bytes.substr(0, 8), bytes.size());
    EXPECT_THAT(length, IsOk());
    data_ = bytes.substr(8 + *length);
    auto header = DecodeSafeTensorsJson(bytes.substr(8, *length), data_.size());
    EXPECT_THAT(header, IsOk());
    return *std::move(header);
  }

  template <typename Number>
  std::vector<Number> NumbersOf(const SafeTensor& tensor) {
    std::vector<Number> numbers((tensor.end - tensor.begin) / sizeof(Number));
    std::memcpy(numbers.data(), data_.data() + tensor.begin, tensor.end - tensor.begin);
    return numbers;
  }

  FaultyFiles files_;
  RowsInMemory rows_;
  std::string data_;
};

TEST_F(SavedTablesTest, CountsRowsWaitingIdsAndElements) {
  for (RowId id = 0; id < 10; ++id) rows_.Make(1, {0, id}, {1, 2, 3, 4, 5, 6});
  rows_.Wait(1, {1, 0}, 1);
  const auto figures = CountRows(*Saved(), 2);
  ASSERT_THAT(figures, IsOk());
  EXPECT_EQ((*figures)[0].rows, 10u);
  EXPECT_EQ((*figures)[0].waiting, 0u);
  EXPECT_EQ((*figures)[0].elements, 60u);
  EXPECT_EQ((*figures)[1].rows, 0u);
  EXPECT_EQ((*figures)[1].waiting, 1u);
  EXPECT_EQ((*figures)[1].elements, 0u);
}

TEST_F(SavedTablesTest, ExportsRowsAndSlotsInOrderOfId) {
  rows_.Make(1, {0, 9}, {1, 2, 3, 4, 5, 6});
  rows_.Make(1, {0, 5}, {7, 8, 9, 10, 11, 12});
  rows_.Wait(1, {0, 7}, 1);
  rows_.Make(1, {1, 6}, {1});
  const SafeTensorsHeader header = Export(0, 2);
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[0].name, "ids");
  EXPECT_EQ(header.tensors[0].dtype, "I64");
  EXPECT_THAT(NumbersOf<RowId>(header.tensors[0]), ElementsAre(5, 9));
  EXPECT_EQ(header.tensors[1].name, "rows");
  EXPECT_THAT(header.tensors[1].shape, ElementsAre(2, 2));
  EXPECT_THAT(NumbersOf<float>(header.tensors[1]), ElementsAre(7, 8, 1, 2));
  EXPECT_EQ(header.tensors[2].name, "exp_avg");
  EXPECT_THAT(NumbersOf<float>(header.tensors[2]), ElementsAre(9, 10, 3, 4));
  EXPECT_EQ(header.tensors[3].name, "exp_avg_sq");
  EXPECT_THAT(NumbersOf<float>(header.tensors[3]), ElementsAre(11, 12, 5, 6));
}

TEST_F(SavedTablesTest, ExportsAnEmptyTableAndLargeIds) {
  rows_.Make(1, {1, ~RowId{0}}, {3});
  const SafeTensorsHeader empty = Export(0, 2);
  ASSERT_EQ(empty.tensors.size(), 4u);
  for (const SafeTensor& tensor : empty.tensors) EXPECT_EQ(tensor.shape[0], 0u) << tensor.name;
  const SafeTensorsHeader header = Export(1, 1);
  EXPECT_EQ(header.tensors[0].dtype, "U64");
  EXPECT_THAT(NumbersOf<RowId>(header.tensors[0]), ElementsAre(~RowId{0}));
}

}  // namespace
}  // namespace sluice
