#include "common/tensor/layout.h"

#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Ranges = std::vector<LayoutRange>;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

LayoutRange Range(const std::string& name, const std::vector<uint32_t>& shape, uint64_t offset,
                  uint64_t length) {
  LayoutRange range;
  range.name = name;
  range.shape = shape;
  range.offset = offset;
  range.length = length;
  return range;
}

// conv [4, 3] at 0, scale (a scalar) at 12, mean [4] at 13: 17 elements.
Ranges Model() {
  Ranges ranges = {Range("conv", {4, 3}, 0, 12), Range("scale", {}, 12, 1),
                   Range("mean", {4}, 13, 4)};
  ranges[2].kind = RangeKind::kStatistic;
  return ranges;
}

Layout Valid(const Ranges& ranges) {
  const auto layout = Layout::Create(ranges);
  EXPECT_THAT(layout, IsOk());
  return layout.value_or(Layout());
}

// `count` tensors of one element each.
Ranges Scalars(size_t count) {
  Ranges ranges;
  for (size_t i = 0; i < count; ++i) ranges.push_back(Range(absl::StrCat("t", i), {}, i, 1));
  return ranges;
}

TEST(LayoutTest, HoldsItsRangesInOrder) {
  const Layout layout = Valid(Model());
  EXPECT_TRUE(layout.ranges() == Model());
  EXPECT_EQ(layout.size(), 17u);
}

// ---- Constants ----

std::string BadConstants(const std::vector<ConstantTensor>& constants) {
  const auto layout = Layout::Create(Model(), {}, constants);
  EXPECT_EQ(ReasonOf(layout.status()), Reason::kBadLayout);
  return std::string(layout.status().message());
}

TEST(LayoutTest, HoldsConstantsOfAnyTypeAndSize) {
  const std::vector<ConstantTensor> constants = {
      {"base", {3, 5}, "I8"},
      {"nothing", {0, kLargest, 7}, "C128"},
      {"seed", {}, "U64"},
      {"mean", {4}, "F64"}};  // the first values of a statistic
  const auto layout = Layout::Create(Model(), {}, constants);
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(layout->constants(), constants);
  EXPECT_EQ(BytesOf(layout->constants()), 15u + 0 + 8 + 32);
  EXPECT_TRUE(layout->OfStripe(Stripes(17, 2), 0).constants().empty());
}

TEST(LayoutTest, RefusesConstantsThatBreakARuleAndNamesThem) {
  EXPECT_THAT(BadConstants({{"", {1}, "I8"}}), HasSubstr("its name has 0 bytes"));
  EXPECT_THAT(BadConstants({{"sluice:x", {1}, "I8"}}), HasSubstr("sluice: are the server's"));
  EXPECT_THAT(BadConstants({{"a", {1}, "Q4"}}), HasSubstr("it has the type Q4"));
  EXPECT_THAT(BadConstants({{"a", std::vector<uint64_t>(9, 1), "I8"}}), HasSubstr("9 dimensions"));
  EXPECT_THAT(BadConstants({{"a", {kLargest}, "I8"}}), HasSubstr("exceed"));
  EXPECT_THAT(BadConstants({{"a", {1ull << 40}, "I8"}, {"b", {1}, "I8"}}),
              HasSubstr("constant 1 of the layout (\"b\"): the constants exceed"));
  EXPECT_THAT(BadConstants({{"a", {1}, "I8"}, {"a", {2}, "I8"}}),
              HasSubstr("another constant has the same name"));
  EXPECT_THAT(BadConstants({{"conv", {4, 3}, "F32"}}), HasSubstr("a parameter has the same name"));
}

TEST(LayoutTest, OnlyAStatisticMayBeACount) {
  Ranges ranges = Model();
  ranges[2].dtype = DataType::kInt64;
  EXPECT_THAT(Layout::Create(ranges), IsOk());
  ranges[0].dtype = DataType::kInt64;
  EXPECT_THAT(Layout::Create(ranges),
              IsError(Reason::kBadLayout, HasSubstr("a parameter of int64")));
}

TEST(LayoutTest, FindsRangesByName) {
  const Layout layout = Valid(Model());
  EXPECT_EQ(layout.Find("conv"), &layout.ranges()[0]);
  EXPECT_EQ(layout.Find("mean"), &layout.ranges()[2]);
  EXPECT_EQ(layout.Find("con"), nullptr);
  EXPECT_EQ(layout.Find(""), nullptr);
}

TEST(LayoutTest, FindsRangesInACopy) {
  Layout copy;
  {
    const Layout original = Valid(Model());
    copy = original;
  }
  EXPECT_EQ(copy.Find("scale"), &copy.ranges()[1]);
}

TEST(LayoutTest, SharesItsRangesWithItsCopies) {
  const Layout original = Valid(Model());
  const Layout copy = original;
  EXPECT_EQ(&copy.ranges(), &original.ranges());
  EXPECT_THAT(CheckSameLayout(original, copy), IsOk());
}

TEST(LayoutTest, NamesElementsAtTheEdgesOfRanges) {
  const Layout layout = Valid(Model());
  EXPECT_EQ(layout.ElementName(0), "conv[0]");
  EXPECT_EQ(layout.ElementName(11), "conv[11]");
  EXPECT_EQ(layout.ElementName(12), "scale[0]");
  EXPECT_EQ(layout.ElementName(13), "mean[0]");
  EXPECT_EQ(layout.ElementName(16), "mean[3]");
}

TEST(LayoutTest, IsEmptyByDefault) {
  EXPECT_THAT(Layout().ranges(), IsEmpty());
  EXPECT_EQ(Layout().size(), 0u);
  EXPECT_EQ(Layout().Find("conv"), nullptr);
}

TEST(LayoutLimitsTest, RefusesAModelWithoutRangesAndTables) {
  EXPECT_THAT(Layout::Create({}),
              IsError(Reason::kBadLayout, HasSubstr("has 0 ranges and 0 tables, expected at least "
                                                    "one of either; give the model a tensor or")));
}

TEST(LayoutTest, MayHaveTablesOnly) {
  TableSpec items;
  items.name = "items";
  items.width = 2;
  const auto layout = Layout::Create({}, {items});
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(layout->size(), 0u);
  EXPECT_THAT(layout->Runs(), IsEmpty());
  EXPECT_EQ(layout->tables().size(), 1u);
  EXPECT_EQ(layout->ElementName(0), "element 0");
  EXPECT_THAT(CheckSameLayout(*layout, *layout), IsOk());
  EXPECT_THAT(CheckSameLayout(*layout, Valid(Scalars(1))),
              IsError(Reason::kLayoutMismatch, HasSubstr("it has 1 tensors, the job's has 0")));
}

TEST(LayoutLimitsTest, AcceptsAMillionRangesAndRefusesOneMore) {
  Ranges ranges = Scalars(1000000);
  EXPECT_EQ(Valid(ranges).size(), 1000000u);
  ranges.push_back(Range("more", {}, 1000000, 1));
  EXPECT_THAT(
      Layout::Create(std::move(ranges)),
      IsError(Reason::kBadLayout, HasSubstr("has 1000001 ranges, expected at most 1000000")));
}

TEST(LayoutLimitsTest, AcceptsNamesOf256BytesAndRefusesLongerAndEmptyOnes) {
  EXPECT_THAT(Layout::Create({Range(std::string(256, 'n'), {}, 0, 1)}), IsOk());
  EXPECT_THAT(Layout::Create({Range(std::string(257, 'n'), {}, 0, 1)}),
              IsError(Reason::kBadLayout, HasSubstr("name has 257 bytes, expected 1 to 256")));
  EXPECT_THAT(Layout::Create({Range("", {}, 0, 1)}),
              IsError(Reason::kBadLayout, HasSubstr("name has 0 bytes")));
}

TEST(LayoutLimitsTest, RefusesANameThatNoMessageCanCarry) {
  EXPECT_THAT(Layout::Create({Range("W\xC3\xA4rme", {}, 0, 1)}), IsOk());
  EXPECT_THAT(Layout::Create({Range("W\xE4rme", {}, 0, 1)}),
              IsError(Reason::kBadLayout, HasSubstr(R"(("W\344rme"): its name is not UTF-8)")));
}

TEST(LayoutLimitsTest, ShowsLittleOfAHugeNameAndNoneOfItsControlCharacters) {
  const std::string name = std::string(10, '\n') + std::string(1000000, 'n');
  const absl::Status status = Layout::Create({Range(name, {}, 0, 1)}).status();
  EXPECT_THAT(status, IsError(Reason::kBadLayout, Not(HasSubstr("\n"))));
  EXPECT_LT(status.message().size(), 400u);
}

TEST(LayoutLimitsTest, AcceptsEightDimensionsAndRefusesNine) {
  EXPECT_THAT(Layout::Create({Range("t", std::vector<uint32_t>(8, 2), 0, 256)}), IsOk());
  EXPECT_THAT(
      Layout::Create({Range("t", std::vector<uint32_t>(9, 2), 0, 512)}),
      IsError(Reason::kBadLayout, HasSubstr("(\"t\"): it has 9 dimensions, expected at most 8")));
}

TEST(LayoutLimitsTest, AcceptsATebibyteOfElementsAndRefusesOneMore) {
  const uint64_t most = uint64_t{1} << 38;
  EXPECT_EQ(Valid({Range("t", {1u << 19, 1u << 19}, 0, most)}).size(), most);
  EXPECT_THAT(Layout::Create({Range("t", {1u << 19, 1u << 19}, 0, most), Range("u", {}, most, 1)}),
              IsError(Reason::kBadLayout,
                      AllOf(HasSubstr("range 1"), HasSubstr("exceeds 274877906944 elements"))));
  EXPECT_THAT(Layout::Create({Range("t", {1u << 20, 1u << 19}, 0, most * 2)}),
              IsError(Reason::kBadLayout, HasSubstr("[1048576, 524288]")));
}

TEST(LayoutShapeTest, RefusesALengthThatIsNotTheShapes) {
  EXPECT_THAT(
      Layout::Create({Range("conv", {4, 3}, 0, 13)}),
      IsError(Reason::kBadLayout, AllOf(HasSubstr("range 0 of the layout (\"conv\")"),
                                        HasSubstr("[4, 3]"), HasSubstr("length of 13 elements"))));
  EXPECT_THAT(Layout::Create({Range("scalar", {}, 0, 0)}),
              IsError(Reason::kBadLayout, HasSubstr("shape []")));
}

TEST(LayoutShapeTest, RefusesATensorWithoutElements) {
  for (const auto& shape : {std::vector<uint32_t>{0}, std::vector<uint32_t>{4, 0}}) {
    const std::string expected =
        absl::StrCat("shape ", ShapeString(shape), " has no elements, expected at least one");
    EXPECT_THAT(Layout::Create({Range("t", shape, 0, 0)}),
                IsError(Reason::kBadLayout, HasSubstr(expected)));
  }
}

// Their length is what is left of the product in 64 bits: no shape may pass by that.
TEST(LayoutShapeTest, RefusesShapesWhoseProductWraps) {
  const uint32_t huge = std::numeric_limits<uint32_t>::max();
  const std::vector<std::vector<uint32_t>> shapes = {
      {1u << 16, 1u << 16, 1u << 16, 1u << 16},
      {1u << 31, 1u << 31, 5},
      {1u << 16, 1u << 16, 1u << 16, (1u << 16) + 1},
      {641, 6700417, 1u << 16, 1u << 16},
      {huge, huge, huge},
      {3, 3, 3, 3, huge, huge, huge, huge},
  };
  for (const std::vector<uint32_t>& shape : shapes) {
    uint64_t wrapped = 1;
    for (const uint32_t dimension : shape) wrapped *= dimension;
    EXPECT_THAT(Layout::Create({Range("liar", shape, 0, wrapped)}),
                IsError(Reason::kBadLayout, AllOf(HasSubstr(ShapeString(shape)),
                                                  HasSubstr("does not hold its length"))));
  }
}

TEST(LayoutOrderTest, RefusesAGapBetweenRanges) {
  EXPECT_THAT(Layout::Create({Range("a", {4}, 0, 4), Range("b", {4}, 5, 4)}),
              IsError(Reason::kBadLayout, AllOf(HasSubstr("range 1 of the layout (\"b\")"),
                                                HasSubstr("at 5, expected 4"))));
}

TEST(LayoutOrderTest, RefusesRangesThatOverlap) {
  EXPECT_THAT(Layout::Create({Range("a", {4}, 0, 4), Range("b", {4}, 3, 4)}),
              IsError(Reason::kBadLayout, HasSubstr("it starts at 3, expected 4")));
}

TEST(LayoutOrderTest, RefusesRangesOutOfOrder) {
  EXPECT_THAT(Layout::Create({Range("b", {4}, 4, 4), Range("a", {4}, 0, 4)}),
              IsError(Reason::kBadLayout, HasSubstr("it starts at 4, expected 0")));
}

TEST(LayoutOrderTest, RefusesAnOffsetWhoseEndWraps) {
  EXPECT_THAT(Layout::Create({Range("a", {4}, 0, 4), Range("b", {4}, kLargest - 3, 4)}),
              IsError(Reason::kBadLayout, HasSubstr("it starts at 18446744073709551612")));
}

TEST(LayoutNamesTest, RefusesANameUsedTwice) {
  EXPECT_THAT(Layout::Create({Range("a", {}, 0, 1), Range("b", {}, 1, 1), Range("a", {}, 2, 1)}),
              IsError(Reason::kBadLayout, AllOf(HasSubstr("range 2 of the layout (\"a\")"),
                                                HasSubstr("another range has the same name"))));
}

TEST(LayoutNamesTest, TellsNamesWithNulBytesApart) {
  EXPECT_THAT(Layout::Create({Range(std::string("a\0b", 3), {}, 0, 1), Range("a", {}, 1, 1)}),
              IsOk());
}

TEST(CheckSameLayoutTest, AcceptsTheSameModel) {
  EXPECT_THAT(CheckSameLayout(Valid(Model()), Valid(Model())), IsOk());
}

TEST(CheckSameLayoutTest, ShowsBothShapesOfTheFirstTensorThatDiffers) {
  const Ranges worker = {Range("conv", {4, 4}, 0, 16), Range("scale", {2}, 16, 2)};
  EXPECT_THAT(CheckSameLayout(Valid(Model()), Valid(worker)),
              IsError(Reason::kLayoutMismatch,
                      HasSubstr("tensor 0 is \"conv\" [4, 4] float32 parameter, the job's is "
                                "\"conv\" [4, 3] float32 parameter")));
}

TEST(CheckSameLayoutTest, TellsShapesOfEqualLengthApart) {
  Ranges worker = Model();
  worker[0].shape = {3, 4};
  EXPECT_THAT(CheckSameLayout(Valid(Model()), Valid(worker)),
              IsError(Reason::kLayoutMismatch, AllOf(HasSubstr("[3, 4]"), HasSubstr("[4, 3]"))));
}

TEST(CheckSameLayoutTest, TellsNamesKindsAndDataTypesApart) {
  Ranges renamed = Model(), other_kind = Model(), other_dtype = Model();
  renamed[1].name = "bias";
  other_kind[2].kind = RangeKind::kParameter;
  other_dtype[0].dtype = DataType::kBFloat16;
  const Layout job = Valid(Model());
  EXPECT_THAT(
      CheckSameLayout(job, Valid(renamed)),
      IsError(Reason::kLayoutMismatch, AllOf(HasSubstr("\"bias\" []"), HasSubstr("\"scale\" []"))));
  EXPECT_THAT(
      CheckSameLayout(job, Valid(other_kind)),
      IsError(Reason::kLayoutMismatch, HasSubstr("\"mean\" [4] float32 parameter, the "
                                                 "job's is \"mean\" [4] float32 statistic")));
  EXPECT_THAT(CheckSameLayout(job, Valid(other_dtype)),
              IsError(Reason::kLayoutMismatch, HasSubstr("\"conv\" [4, 3] bfloat16")));
}

TEST(CheckSameLayoutTest, NamesTheFirstTensorTooMany) {
  Ranges worker = Model();
  worker.push_back(Range("extra", {2}, 17, 2));
  EXPECT_THAT(CheckSameLayout(Valid(Model()), Valid(worker)),
              IsError(Reason::kLayoutMismatch, HasSubstr("it has 4 tensors, the job's has 3; one "
                                                         "too many is \"extra\" [2]")));
}

TEST(CheckSameLayoutTest, NamesTheFirstTensorMissing) {
  Ranges worker = Model();
  worker.pop_back();
  EXPECT_THAT(CheckSameLayout(Valid(Model()), Valid(worker)),
              IsError(Reason::kLayoutMismatch, HasSubstr("it has 2 tensors, the job's has 3; the "
                                                         "first that it lacks is \"mean\" [4]")));
}

// ---- Runs ----

using Part = std::tuple<RangeKind, uint64_t, uint64_t>;  // kind, begin, end
constexpr RangeKind kParameter = RangeKind::kParameter;
constexpr RangeKind kStatistic = RangeKind::kStatistic;

// Parameters [0, 3), statistics [3, 5), parameters [5, 6).
Layout Mixed() {
  Ranges ranges = {Range("a", {2}, 0, 2), Range("b", {1}, 2, 1), Range("mean", {1}, 3, 1),
                   Range("var", {1}, 4, 1), Range("c", {1}, 5, 1)};
  ranges[2].kind = ranges[3].kind = RangeKind::kStatistic;
  return Valid(ranges);
}

std::vector<Part> PartsOf(const Layout& layout, uint64_t begin, uint64_t end) {
  std::vector<Part> parts;
  ForEachRun(layout.Runs(), begin, end, [&parts](RangeKind kind, uint64_t from, uint64_t to) {
    parts.emplace_back(kind, from, to);
  });
  return parts;
}

TEST(LayoutRunsTest, JoinsNeighboursOfOneKind) {
  std::vector<Part> runs;
  for (const KindRun& run : Mixed().Runs()) runs.emplace_back(run.kind, run.begin, run.end);
  EXPECT_THAT(runs,
              ElementsAre(Part(kParameter, 0, 3), Part(kStatistic, 3, 5), Part(kParameter, 5, 6)));
}

TEST(LayoutRunsTest, AreNoneOfNoTensors) { EXPECT_TRUE(Layout().Runs().empty()); }

TEST(ForEachRunTest, GivesThePartsOfAVectorThatLieInARange) {
  const Layout layout = Mixed();
  EXPECT_THAT(PartsOf(layout, 0, 6),
              ElementsAre(Part(kParameter, 0, 3), Part(kStatistic, 3, 5), Part(kParameter, 5, 6)));
  EXPECT_THAT(PartsOf(layout, 1, 4), ElementsAre(Part(kParameter, 1, 3), Part(kStatistic, 3, 4)));
  EXPECT_THAT(PartsOf(layout, 3, 5), ElementsAre(Part(kStatistic, 3, 5)));
  EXPECT_THAT(PartsOf(layout, 5, 6), ElementsAre(Part(kParameter, 5, 6)));
  EXPECT_THAT(PartsOf(layout, 1, 2), ElementsAre(Part(kParameter, 1, 2)));
}

TEST(ForEachRunTest, GivesNothingOfAnEmptyRange) {
  for (const uint64_t at : {0, 3, 6}) EXPECT_THAT(PartsOf(Mixed(), at, at), IsEmpty()) << at;
}

TEST(LayoutTextTest, WritesShapesAsPeopleDo) {
  EXPECT_EQ(ShapeString({64, 3, 3, 3}), "[64, 3, 3, 3]");
  EXPECT_EQ(ShapeString({10}), "[10]");
  EXPECT_EQ(ShapeString({}), "[]");
}

TEST(LayoutTextTest, NamesDataTypes) {
  EXPECT_EQ(DataTypeName(DataType::kFloat32), "float32");
  EXPECT_EQ(DataTypeName(DataType::kFloat64), "float64");
  EXPECT_EQ(DataTypeName(DataType::kFloat16), "float16");
  EXPECT_EQ(DataTypeName(DataType::kBFloat16), "bfloat16");
}

}  // namespace
}  // namespace sluice
