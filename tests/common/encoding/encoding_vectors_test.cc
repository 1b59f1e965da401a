// The examples of common/encoding/FORMAT.md, which another program made and decoded: testdata/
// encodings.json. encoding_reference.py holds the same ones.
#include <cstring>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;
using Values = std::vector<float>;

const Value& Field(const Struct& object, const std::string& name) {
  return object.fields().at(name);
}

uint64_t Number(const Struct& object, const std::string& name) {
  return static_cast<uint64_t>(Field(object, name).number_value());
}

// What a double may not hold is a text.
uint64_t LongNumber(const Struct& object, const std::string& name) {
  uint64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(Field(object, name).string_value(), &number)) << name;
  return number;
}

uint64_t ChecksumAt(const Struct& example) {
  return std::stoull(Field(example, "checksum").string_value(), nullptr, 16);
}

std::string Lines(const Struct& object, const std::string& name) {
  std::string lines;
  for (const Value& line : Field(object, name).list_value().values()) {
    lines += (lines.empty() ? "" : " ") + line.string_value();
  }
  return lines;
}

std::string Bytes(const Struct& object, const std::string& name) {
  std::string bytes;
  for (absl::string_view line : absl::StrSplit(Lines(object, name), ' ')) {
    bytes += absl::HexStringToBytes(line);
  }
  return bytes;
}

std::vector<uint32_t> BitsAt(const Struct& object, const std::string& name) {
  std::vector<uint32_t> bits;
  for (absl::string_view word : absl::StrSplit(Lines(object, name), ' ')) {
    bits.push_back(static_cast<uint32_t>(std::stoul(std::string(word), nullptr, 16)));
  }
  return bits;
}

Values ValuesAt(const Struct& object, const std::string& name) {
  const std::vector<uint32_t> bits = BitsAt(object, name);
  Values values(bits.size());
  std::memcpy(values.data(), bits.data(), bits.size() * sizeof(float));
  return values;
}

std::vector<uint32_t> Bits(const Values& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

ChunkEncoding HowAt(const Struct& example) {
  const Struct& object = Field(example, "how").struct_value();
  ChunkEncoding how;
  how.count = Number(object, "count");
  const auto transform = ParseEncoding(Field(object, "transform").string_value());
  EXPECT_THAT(transform, IsOk());
  if (transform.ok()) how.transform = transform->transform;
  static const auto* const layouts =
      new std::map<std::string, ByteLayout>{{"plain", ByteLayout::kPlain},
                                            {"planes", ByteLayout::kPlanes},
                                            {"nonzero", ByteLayout::kNonzeroPlanes}};
  how.byte_layout = layouts->at(Field(object, "byte_layout").string_value());
  static const auto* const compressors = new std::map<std::string, Compressor>{
      {"none", Compressor::kNone}, {"zstd", Compressor::kZstd}, {"pdict", Compressor::kPdict}};
  how.compressor = compressors->at(Field(object, "compressor").string_value());
  how.kept = Number(object, "kept");
  how.half = Field(object, "half").bool_value();
  how.seed = LongNumber(object, "seed");
  how.columns = Number(object, "columns");
  how.rank = static_cast<uint32_t>(Number(object, "rank"));
  return how;
}

void ExpectEqual(const ChunkEncoding& how, const ChunkEncoding& expected) {
  EXPECT_EQ(how.count, expected.count);
  EXPECT_EQ(how.transform, expected.transform);
  EXPECT_EQ(how.custom, expected.custom);
  EXPECT_EQ(how.byte_layout, expected.byte_layout);
  EXPECT_EQ(how.compressor, expected.compressor);
  EXPECT_EQ(how.kept, expected.kept);
  EXPECT_EQ(how.half, expected.half);
  EXPECT_EQ(how.seed, expected.seed);
  EXPECT_EQ(how.columns, expected.columns);
  EXPECT_EQ(how.rank, expected.rank);
}

EncodedChunk EncodedAt(const Struct& example) {
  const auto encoding = ParseEncoding(Field(example, "encoding").string_value());
  EXPECT_THAT(encoding, IsOk());
  ChunkContext context;
  context.seed = LongNumber(example, "seed");
  context.columns = Number(example, "columns");
  return EncodeValues(0, ValuesAt(example, "values"), *encoding, context, BuiltinTransforms());
}

// One of the file's cases.
struct Example {
  Struct json;

  std::string name() const { return Field(json, "name").string_value(); }
};

std::ostream& operator<<(std::ostream& out, const Example& example) {
  return out << example.name();
}

// Those that have the field, or those that have it not.
std::vector<Example> Examples(const std::string& field, bool has) {
  std::ifstream file("tests/common/encoding/testdata/encodings.json");
  std::stringstream text;
  text << file.rdbuf();
  Struct root;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text.str(), &root).ok());
  std::vector<Example> examples;
  for (const Value& value : Field(root, "cases").list_value().values()) {
    if ((value.struct_value().fields().count(field) > 0) == has) {
      examples.push_back({value.struct_value()});
    }
  }
  return examples;
}

absl::Status Decode(const Struct& example, Values* values) {
  const std::string payload = Bytes(example, "payload");
  EncodedChunk chunk;
  chunk.how = HowAt(example);
  chunk.payload = payload;
  chunk.checksum = ChecksumAt(example);
  values->resize(chunk.how.count);
  return DecodeValues(chunk, absl::MakeSpan(*values), BuiltinTransforms());
}

class EncodedTest : public ::testing::TestWithParam<Example> {};
class DecodedTest : public ::testing::TestWithParam<Example> {};
class RefusedTest : public ::testing::TestWithParam<Example> {};

// Frames differ from one zstd to the next; what they stand for does not.
TEST_P(EncodedTest, IsThePayload) {
  const Struct& example = GetParam().json;
  const EncodedChunk chunk = EncodedAt(example);
  ExpectEqual(chunk.how, HowAt(example));
  if (Field(example, "frames").bool_value()) {
    Values values(chunk.how.count);
    ASSERT_THAT(DecodeValues(chunk, absl::MakeSpan(values), BuiltinTransforms()), IsOk());
    EXPECT_EQ(Bits(values), BitsAt(example, "decoded"));
    return;
  }
  EXPECT_EQ(absl::BytesToHexString(chunk.payload),
            absl::BytesToHexString(Bytes(example, "payload")));
  EXPECT_EQ(chunk.checksum, ChecksumAt(example));
}

TEST_P(DecodedTest, HasTheBits) {
  Values values;
  ASSERT_THAT(Decode(GetParam().json, &values), IsOk());
  EXPECT_EQ(Bits(values), BitsAt(GetParam().json, "decoded"));
}

TEST_P(RefusedTest, IsABadChunk) {
  Values values;
  EXPECT_EQ(ReasonOf(Decode(GetParam().json, &values)), Reason::kBadChunk);
}

const auto kNameOf = [](const auto& info) { return info.param.name(); };

INSTANTIATE_TEST_SUITE_P(Examples, EncodedTest, ::testing::ValuesIn(Examples("values", true)),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Examples, DecodedTest, ::testing::ValuesIn(Examples("decoded", true)),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Examples, RefusedTest, ::testing::ValuesIn(Examples("decoded", false)),
                         kNameOf);

}  // namespace
}  // namespace sluice
