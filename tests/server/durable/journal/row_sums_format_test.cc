#include "server/durable/journal/row_sums_format.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/journal/journal.h"
#include "server/durable/journal/journal_format.h"
#include "tests/testing/durable/faulty_files.h"
#include "tests/testing/status.h"
#include "tests/testing/vectors.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kDirectory[] = "d";
const std::vector<uint32_t> kWidths = {2, 3, 1};
const TableSums kFirst = {0, {5, uint64_t{1} << 63}, {1, 2, 3, 4}, {0.5f, 1}};
const TableSums kThird = {2, {0, 1, 9}, {7, 8, 9}, {1, 2, 3}};

StepRecord RecordAt(uint64_t step, uint32_t gradients = 1) {
  StepRecord record;
  record.step = Step(step);
  record.incarnation = Incarnation(1);
  record.gradients = gradients;
  return record;
}

void ExpectSame(const TableSums& found, const TableSums& expected) {
  EXPECT_EQ(found.table, expected.table);
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.sums, expected.sums);
  EXPECT_EQ(found.shares, expected.shares);
}

// The steps of a segment, read with these widths; a status at its end.
class JournaledRowsTest : public ::testing::Test {
 protected:
  absl::StatusOr<JournaledStep> First(const std::string& bytes, uint64_t elements = 3) {
    EXPECT_THAT((*files_.Create("d/one"))->Append(bytes), IsOk());
    const auto file = files_.Open("d/one");
    JournalReader reader(**file, elements, kWidths);
    auto next = reader.Next();
    if (!next.ok()) return next.status();
    return *std::move(*next);
  }

  // A record whose checksums fit, of these counts and bytes of rows.
  static std::string RecordOf(const std::vector<TableCount>& counts, const std::string& rows,
                              const Values& sum = {1, 2, 3}, uint32_t gradients = 1) {
    const JournalFrame frame = FrameOf(EncodeSavedStep(RecordAt(1, gradients), counts), sum, rows);
    const absl::string_view sums(reinterpret_cast<const char*>(sum.data()),
                                 sum.size() * sizeof(float));
    return absl::StrCat(frame.head, sums, rows, frame.tail);
  }

  static std::string RecordOf(const std::vector<TableSums>& rows) {
    return RecordOf(CountsOf(rows), EncodeRowSums(rows));
  }

  FaultyFiles files_;
};

TEST_F(JournaledRowsTest, ComeBackAsTheJournalWroteThem) {
  {
    Journal journal(files_, kDirectory, Incarnation(1), {[](Step) {}, [](const auto&) {}, {}, {}});
    const Values sum = {1, 2, 3};
    journal.Append(RecordAt(1), sum, {kFirst, kThird});
    journal.Append(RecordAt(2), sum, {});
    journal.Append(RecordAt(3, 0), {}, {});
    journal.Append(RecordAt(4), sum, {kThird});
  }
  const auto file = files_.Open("d/journal-000001-000000000000");
  ASSERT_THAT(file, IsOk());
  JournalReader reader(**file, 3, kWidths);
  std::vector<JournaledStep> steps;
  for (auto next = reader.Next(); next.ok() && next->has_value(); next = reader.Next()) {
    steps.push_back(*std::move(*next));
  }
  ASSERT_THAT(steps, SizeIs(4));
  ASSERT_THAT(steps[0].rows, SizeIs(2));
  ExpectSame(steps[0].rows[0], kFirst);
  ExpectSame(steps[0].rows[1], kThird);
  EXPECT_THAT(ValuesOf(steps[0].sum.span()), ElementsAre(1, 2, 3));
  EXPECT_THAT(steps[1].rows, IsEmpty());
  EXPECT_THAT(steps[2].rows, IsEmpty());
  ASSERT_THAT(steps[3].rows, SizeIs(1));
  ExpectSame(steps[3].rows[0], kThird);
}

TEST_F(JournaledRowsTest, AStepWithoutRowsHasTheFormatThatWasBefore) {
  EXPECT_EQ(RecordOf({})[7], '2');
  EXPECT_EQ(RecordOf({kFirst})[7], '3');
}

TEST_F(JournaledRowsTest, ATableWithoutIdsIsNotWritten) {
  const auto step = First(RecordOf({TableSums{0, {}, {}, {}}, kThird}));
  ASSERT_THAT(step, IsOk());
  ASSERT_THAT(step->rows, SizeIs(1));
  EXPECT_EQ(step->rows[0].table, 2u);
}

TEST_F(JournaledRowsTest, AModelOfTablesAloneHasNoSum) {
  const auto step = First(RecordOf(CountsOf({kThird}), EncodeRowSums({kThird}), {}), 0);
  ASSERT_THAT(step, IsOk());
  EXPECT_THAT(step->rows, SizeIs(1));
}

TEST_F(JournaledRowsTest, WhicheverBitFlipsTheRecordIsNotRead) {
  const std::string bytes = RecordOf({kFirst, kThird});
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_THAT(First(flipped), HasCode(absl::StatusCode::kDataLoss, HasSubstr("byte 0")))
        << "bit " << bit;
  }
}

TEST_F(JournaledRowsTest, WhereverItIsCutTheRecordIsNotRead) {
  const std::string bytes = RecordOf({kFirst, kThird});
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_THAT(First(bytes.substr(0, size)),
                HasCode(absl::StatusCode::kDataLoss, HasSubstr("cut")))
        << size << " bytes";
  }
}

TEST_F(JournaledRowsTest, CountsThatDoNotFitAreRefused) {
  const std::string rows = EncodeRowSums({kFirst});
  const struct {
    std::vector<TableCount> counts;
    std::string why;
  } cases[] = {
      {{}, "40 bytes of rows"},
      {{{0, 1}}, "40 bytes of rows"},
      {{{0, 3}}, "40 bytes of rows"},
      {{{0, uint64_t{1} << 62}}, "40 bytes of rows"},
      {{{0, 0}}, "40 bytes of rows"},
      {{{3, 1}}, "table 3, expected tables below 3"},
      {{{0, 1}, {0, 1}}, "table 0, expected tables below 3, in their order"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(First(RecordOf(one.counts, rows)),
                HasCode(absl::StatusCode::kDataLoss, HasSubstr(one.why)));
  }
}

TEST_F(JournaledRowsTest, IdsOutOfOrderAreRefused) {
  TableSums repeated = kThird;
  repeated.ids = {0, 1, 1};
  EXPECT_THAT(First(RecordOf({repeated})),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("not in ascending order")));
}

TEST_F(JournaledRowsTest, RowsWithoutGradientsAreRefused) {
  EXPECT_THAT(First(RecordOf(CountsOf({kThird}), EncodeRowSums({kThird}), {}, 0)),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("rows without gradients")));
}

}  // namespace
}  // namespace sluice
