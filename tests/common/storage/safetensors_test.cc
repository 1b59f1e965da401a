#include "common/storage/safetensors.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(SafeTensorsTest, IsWhatTheFormatsOwnLibraryWrites) {
  SafeTensorsHeader header;
  header.tensors = {{"a", "F32", {2, 3}, 0, 24}};
  const std::string bytes = EncodeSafeTensorsHeader(header);
  const std::string json = R"({"a":{"data_offsets":[0,24],"dtype":"F32","shape":[2,3]}})";
  EXPECT_EQ(bytes.substr(kSafeTensorsPrefix, json.size()), json);
  EXPECT_EQ(bytes.size() % 64, 0u);
  EXPECT_EQ(FromLittleEndian64(bytes), bytes.size() - kSafeTensorsPrefix);
  EXPECT_EQ(bytes.find_first_not_of(' ', kSafeTensorsPrefix + json.size()), std::string::npos);
}

TEST(SafeTensorsTest, ComesBackInTheOrderOfPlaces) {
  SafeTensorsHeader header;
  header.tensors = {{"z", "F32", {}, 0, 4}, {"a", "U8", {3}, 4, 7}, {"m", "F64", {1, 2}, 7, 23}};
  header.metadata = {{"key", "\"value\"\n"}};
  const std::string bytes = EncodeSafeTensorsHeader(header);
  const auto length = DecodeSafeTensorsPrefix(bytes, bytes.size() + 23);
  ASSERT_THAT(length, IsOkAndHolds(bytes.size() - kSafeTensorsPrefix));
  const auto decoded = DecodeSafeTensorsJson(bytes.substr(kSafeTensorsPrefix), 23);
  ASSERT_THAT(decoded, IsOk());
  EXPECT_THAT(decoded->metadata, ElementsAre(Pair("key", "\"value\"\n")));
  ASSERT_EQ(decoded->tensors.size(), 3u);
  EXPECT_EQ(decoded->tensors[0].name, "z");
  EXPECT_EQ(decoded->tensors[1].dtype, "U8");
  EXPECT_THAT(decoded->tensors[2].shape, ElementsAre(1, 2));
  EXPECT_EQ(decoded->tensors[2].end, 23u);
}

TEST(SafeTensorsTest, RefusesAHeaderLongerThanItsFile) {
  EXPECT_THAT(DecodeSafeTensorsPrefix(LittleEndian64(93), 100),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("claims to be 93 bytes")));
  EXPECT_THAT(DecodeSafeTensorsPrefix(LittleEndian64(UINT64_MAX), 100),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("bytes long")));
  EXPECT_THAT(DecodeSafeTensorsPrefix(LittleEndian64(92), 100), IsOkAndHolds(92));
}

TEST(SafeTensorsTest, AcceptsAHeaderOfTheFormatsLimitAndNoLonger) {
  constexpr uint64_t kLargeFile = 2 * kMostSafeTensorsHeader;
  EXPECT_THAT(DecodeSafeTensorsPrefix(LittleEndian64(kMostSafeTensorsHeader), kLargeFile),
              IsOkAndHolds(kMostSafeTensorsHeader));
  EXPECT_THAT(DecodeSafeTensorsPrefix(LittleEndian64(kMostSafeTensorsHeader + 1), kLargeFile),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr("claims to be 500000001 bytes")));
}

TEST(SafeTensorsTest, KnowsTheSizeOfEachType) {
  const std::map<std::string, uint64_t> sizes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  for (const auto& [dtype, size] : sizes) {
    const std::string json = absl::StrCat(R"({"a":{"dtype":")", dtype,
                                          R"(","shape":[1],"data_offsets":[0,)", size, "]}}");
    EXPECT_THAT(DecodeSafeTensorsJson(json, size), IsOk()) << dtype;
  }
}

struct Wrong {
  const char* json;
  const char* problem;
};

class WrongSafeTensorsTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongSafeTensorsTest, IsRefusedWithTheReason) {
  EXPECT_THAT(DecodeSafeTensorsJson(GetParam().json, 8),
              HasCode(absl::StatusCode::kDataLoss, HasSubstr(GetParam().problem)));
}

INSTANTIATE_TEST_SUITE_P(
    Headers, WrongSafeTensorsTest,
    ::testing::Values(
        Wrong{"", "not a JSON object"}, Wrong{"[]", "not a JSON object"},
        Wrong{"{\"a\"", "not a JSON object"},
        Wrong{"{}", "the tensors end at 0, the file's data at 8"},
        Wrong{R"({"a":1})", "lacks a dtype"},
        Wrong{R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})", "lacks a dtype"},
        Wrong{R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "lacks a dtype"},
        Wrong{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "lacks a dtype"},
        Wrong{R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", "has the dtype F31"},
        Wrong{R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
              "does not fit its shape"},
        Wrong{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
              "does not fit its shape"},
        Wrong{R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "does not fit"},
        Wrong{R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
              "does not fit its shape"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "expected 0"},
        Wrong{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
              R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
              "expected 4"},
        Wrong{R"({"__metadata__":[],"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
              "not a JSON object"},
        Wrong{R"({"__metadata__":{"k":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
              "not a string"}));

}  // namespace
}  // namespace sluice
