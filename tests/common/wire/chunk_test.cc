#include "common/wire/chunk.h"

#include <grpcpp/grpcpp.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "common/encoding/codec.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/protocol/protocol_types.h"
#include "common/wire/encoding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/buffers.h"
#include "tests/testing/seed.h"
#include "tests/testing/server/messages.h"
#include "tests/testing/status.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();

grpc::ByteBuffer Whole(const std::string& bytes) { return Sliced(bytes, {}); }

// As generated code writes it.
template <typename Message>
std::string Generated(uint64_t offset, const std::string& payload) {
  Message message;
  message.mutable_chunk()->set_offset(offset);
  message.mutable_chunk()->set_payload(payload);
  return message.SerializeAsString();
}

std::string PayloadOf(const std::vector<float>& elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()),
                     elements.size() * sizeof(float));
}

std::vector<float> Elements(size_t count) {
  std::vector<float> elements(count);
  for (size_t i = 0; i < count; ++i) elements[i] = static_cast<float>(i) + 0.5f;
  return elements;
}

// ---- Writing ----

TEST(EncodeChunkTest, WritesTheBytesThatGeneratedCodeWrites) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128},
                                uint64_t{1} << 18, uint64_t{1} << 35, kLargest}) {
    for (const size_t count : {0, 1, 3, 31, 32, 4095, 4096, 1 << 18}) {
      const std::vector<float> elements = Elements(count);
      const std::string bytes = BytesOf(EncodeChunk(offset, Share(elements), Checksums::kOff));
      const std::string payload = PayloadOf(elements);
      ASSERT_EQ(bytes, Generated<v1::PushGradientsRequest>(offset, payload)) << offset << count;
      ASSERT_EQ(bytes, Generated<v1::InitializeParamsRequest>(offset, payload)) << offset << count;
      ASSERT_EQ(bytes, Generated<v1::PullParamsResponse>(offset, payload)) << offset << count;
    }
  }
}

TEST(EncodeChunkTest, IsLittleEndianAndEndsWithItsPayload) {
  EXPECT_EQ(BytesOf(EncodeChunk(5, Share({1.0f, -2.0f}), Checksums::kOff)),
            std::string("\x12\x0c"           // chunk of 12 bytes
                        "\x08\x05"           // offset: 5
                        "\x7a\x08"           // payload of 8 bytes
                        "\x00\x00\x80\x3f"   // 1
                        "\x00\x00\x00\xc0",  // −2
                        14));
}

TEST(EncodeChunkTest, ReadsThePayloadWhereItLies) {
  const SharedFloats elements = Share(Elements(1000));
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(EncodeChunk(7, elements.Part(10, 900), Checksums::kOff).Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(static_cast<const void*>(slices[1].begin()), elements.values.data() + 10);
  EXPECT_EQ(slices[1].size(), 3600u);
}

TEST(EncodeChunkTest, KeepsThePayloadsMemoryAsLongAsAnySliceOfItLives) {
  SharedFloats elements = Share(Elements(100));
  const std::weak_ptr<const void> memory = elements.owner;
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(EncodeChunk(7, elements, Checksums::kOff).Dump(&slices).ok());
  elements = SharedFloats();
  EXPECT_FALSE(memory.expired());
  slices.clear();
  EXPECT_TRUE(memory.expired());
}

TEST(EncodeChunkTest, AFullChunkFitsGrpcsLimit) {
  EXPECT_LT(EncodeChunk(kLargest, Share(Elements(kChunkElements)), Checksums::kOff).Length(),
            size_t{4} << 20);
}

// A chunk in one message of generated code, and its encoding there.
EncodedChunk Encoded(const std::string& encoding, uint64_t offset, size_t count) {
  return EncodeValues(offset, Elements(count), *ParseEncoding(encoding), {}, BuiltinTransforms());
}

TEST(EncodeChunkTest, WritesEncodedChunksAsGeneratedCodeDoes) {
  for (const char* encoding : {"float16", "int8", "top-k:0.1:float16", "float32/planes/zstd"}) {
    for (const uint64_t offset : {uint64_t{0}, uint64_t{1000}, kLargest}) {
      const EncodedChunk chunk = Encoded(encoding, offset, 3000);
      EXPECT_EQ(BytesOf(EncodeChunk(chunk)), GradientOf(chunk).SerializeAsString()) << encoding;
    }
  }
}

TEST(EncodeChunkTest, AChecksumPrecedesThePayload) {
  const std::vector<float> elements = Elements(100);
  v1::PushGradientsRequest message;
  ASSERT_TRUE(message.ParseFromString(BytesOf(EncodeChunk(9, Share(elements), Checksums::kOn))));
  EXPECT_EQ(message.chunk().checksum(), Checksum(PayloadOf(elements)));
  EXPECT_EQ(message.SerializeAsString(), BytesOf(EncodeChunk(9, Share(elements), Checksums::kOn)));
}

TEST(ChecksumsTest, AreLeftOutOnOneMachine) {
  for (const char* near :
       {"unix:/tmp/server.sock", "unix:", "fd:9", "127.0.0.1:7070", "localhost:7070", "[::1]:7070",
        "ipv4:127.0.0.1:50123", "ipv6:%5B::1%5D:50123"}) {
    EXPECT_EQ(ChecksumsFor(near), Checksums::kOff) << near;
  }
  for (const char* far :
       {"10.0.0.7:7070", "node7:7070", "ipv4:10.0.0.7:50123", "ipv6:%5Bfe80::7%5D:50123", ""}) {
    EXPECT_EQ(ChecksumsFor(far), Checksums::kOn) << far;
  }
}

// ---- Reading ----

// In one slice, in many, and in a form that only generated code reads.
std::vector<grpc::ByteBuffer> FormsOf(const v1::PushGradientsRequest& message) {
  const std::string bytes = message.SerializeAsString();
  std::vector<size_t> ends;
  for (size_t end = 5; end < bytes.size(); end += 97) ends.push_back(end);
  return {Whole(bytes), Sliced(bytes, ends), Whole(std::string("\x60\x01", 2) + bytes)};
}

TEST(DecodeChunkChecksumTest, OneThatFitsIsTaken) {
  v1::PushGradientsRequest message;
  const std::string payload = PayloadOf(Elements(500));
  message.mutable_chunk()->set_offset(3);
  message.mutable_chunk()->set_payload(payload);
  message.mutable_chunk()->set_checksum(Checksum(payload));
  for (const grpc::ByteBuffer& bytes : FormsOf(message)) {
    const auto chunk = DecodeChunk<v1::PushGradientsRequest>(bytes);
    ASSERT_THAT(chunk, IsOk());
    EXPECT_EQ(BytesOf(*chunk), payload);
  }
}

TEST(DecodeChunkChecksumTest, OneThatDoesNotIsRefused) {
  v1::PushGradientsRequest message;
  std::string payload = PayloadOf(Elements(500));
  message.mutable_chunk()->set_offset(3);
  message.mutable_chunk()->set_checksum(Checksum(payload));
  payload[1234] ^= 1;
  message.mutable_chunk()->set_payload(payload);
  for (const grpc::ByteBuffer& bytes : FormsOf(message)) {
    const auto chunk = DecodeChunk<v1::PushGradientsRequest>(bytes);
    EXPECT_EQ(ReasonOf(chunk.status()), Reason::kCorruptChunk);
    EXPECT_THAT(std::string(chunk.status().message()), HasSubstr("chunk at offset 3"));
  }
}

TEST(DecodeChunkChecksumTest, APayloadThatWasCutOnItsWayIsCorruptHoweverItIsRead) {
  v1::PushGradientsRequest message = GradientOf(9, Elements(3));
  message.mutable_chunk()->set_checksum(Checksum(message.chunk().payload()));
  message.mutable_chunk()->mutable_payload()->pop_back();
  for (const grpc::ByteBuffer& bytes : FormsOf(message)) {
    const auto chunk = DecodeChunk<v1::PushGradientsRequest>(bytes);
    EXPECT_EQ(ReasonOf(chunk.status()), Reason::kCorruptChunk);
  }
}

TEST(DecodeEncodedChunkTest, HasAllThatADecoderMustKnow) {
  for (const char* encoding :
       {"float16", "int8", "top-k:0.1:float16", "random-k", "float32/planes/zstd"}) {
    EncodedChunk sent = Encoded(encoding, 77, 3000);
    sent.of_vector = sent.how.transform == ValueTransform::kInt8;
    v1::PushGradientsRequest message;
    ASSERT_TRUE(message.ParseFromString(BytesOf(EncodeChunk(sent))));
    for (const grpc::ByteBuffer& bytes : FormsOf(message)) {
      const auto chunk = DecodeChunk<v1::PushGradientsRequest>(bytes);
      ASSERT_THAT(chunk, IsOk());
      ASSERT_TRUE(chunk->encoded.has_value());
      EXPECT_EQ(chunk->offset, 77u);
      EXPECT_EQ(chunk->size(), 3000u);
      EXPECT_EQ(chunk->encoded->of_vector, sent.of_vector);
      std::vector<float> expected(3000);
      std::vector<float> values(3000);
      ASSERT_THAT(DecodeValues(sent, absl::MakeSpan(expected), BuiltinTransforms()), IsOk());
      ASSERT_THAT(DecodeValues(*chunk->encoded, absl::MakeSpan(values), BuiltinTransforms()),
                  IsOk());
      EXPECT_EQ(values, expected) << encoding;
    }
  }
}

TEST(DecodeEncodedChunkTest, OnlyAnEncodedChunkMayBeOfTheWholeVector) {
  v1::PushGradientsRequest message;
  message.mutable_chunk()->set_of_vector(true);
  message.mutable_chunk()->set_offset(8);
  message.mutable_chunk()->set_payload("12345678");
  for (const grpc::ByteBuffer& bytes : FormsOf(message)) {
    EXPECT_THAT(DecodeChunk<v1::PushGradientsRequest>(bytes),
                IsError(Reason::kBadChunk, HasSubstr("chunk at offset 8 is one of the whole vector "
                                                     "(field of_vector) without an encoding")));
  }
}

TEST(DecodeEncodedChunkTest, RefusesWhatCannotBe) {
  const EncodedChunk sent = Encoded("int8", 0, 100);
  v1::PushGradientsRequest good;
  ASSERT_TRUE(good.ParseFromString(BytesOf(EncodeChunk(sent))));
  const auto refused = [](const v1::PushGradientsRequest& message) {
    return ReasonOf(
        DecodeChunk<v1::PushGradientsRequest>(Whole(message.SerializeAsString())).status());
  };
  v1::PushGradientsRequest bad = good;
  bad.mutable_chunk()->clear_checksum();
  EXPECT_EQ(refused(bad), Reason::kBadChunk);
  for (const uint64_t count : {uint64_t{0}, uint64_t{262145}, kLargest}) {
    bad = good;
    bad.mutable_chunk()->mutable_encoding()->set_count(count);
    EXPECT_EQ(refused(bad), Reason::kBadChunk) << count;
  }
  bad = good;
  bad.mutable_chunk()->mutable_encoding()->set_transform(static_cast<v1::ValueTransform>(99));
  EXPECT_EQ(refused(bad), Reason::kBadChunk);
  bad = good;
  bad.mutable_chunk()->mutable_encoding()->set_compressor(static_cast<v1::Compressor>(3));
  EXPECT_EQ(refused(bad), Reason::kBadChunk);
}

TEST(EncodingMessageTest, SaysAllOfAnEncoding) {
  for (const char* name : {"float16", "int8:stochastic", "top-k:0.25:float16", "random-k:0.5",
                           "low-rank:7", "bfloat16/planes/zstd:3", "bfloat16/nonzero/pdict"}) {
    const auto encoding = FromProto(ToProto(*ParseEncoding(name)), BuiltinTransforms());
    ASSERT_THAT(encoding, IsOk());
    EXPECT_EQ(EncodingName(*encoding), name);
  }
}

TEST(EncodingMessageTest, RefusesWhatIsOutOfItsDomain) {
  v1::Encoding message = ToProto(*ParseEncoding("top-k:0.25"));
  message.set_share(2);
  EXPECT_EQ(ReasonOf(FromProto(message, BuiltinTransforms()).status()), Reason::kBadArgument);
  message = ToProto(*ParseEncoding("int8/zstd"));
  message.set_level(99);
  EXPECT_EQ(ReasonOf(FromProto(message, BuiltinTransforms()).status()), Reason::kBadArgument);
  message.set_transform(static_cast<v1::ValueTransform>(77));
  EXPECT_EQ(ReasonOf(FromProto(message, BuiltinTransforms()).status()), Reason::kBadArgument);
}

TEST(EncodingMessageTest, AUsersOwnTransformHasNoNameOfSluices) {
  v1::Encoding message;
  message.set_transform(v1::CUSTOM_VALUES);
  for (const char* name : {"int8", "top-k:0.5", "float32/zstd"}) {
    message.set_custom(name);
    EXPECT_THAT(FromProto(message, BuiltinTransforms()),
                IsError(Reason::kBadArgument, HasSubstr(name)));
  }
}

template <typename Message>
class DecodeChunkTest : public ::testing::Test {};

using Messages =
    ::testing::Types<v1::PushGradientsRequest, v1::InitializeParamsRequest, v1::PullParamsResponse>;
TYPED_TEST_SUITE(DecodeChunkTest, Messages);

TYPED_TEST(DecodeChunkTest, KeepsEveryBitOfItsElements) {
  const std::string payload = PayloadOf({0.0f, -0.0f, 1e-45f, std::nanf("7"), -HUGE_VALF, 3.4e38f});
  const auto chunk = DecodeChunk<TypeParam>(Whole(Generated<TypeParam>(kLargest, payload)));
  ASSERT_THAT(chunk, IsOk());
  EXPECT_EQ(chunk->offset, kLargest);
  EXPECT_EQ(chunk->size(), 6u);
  EXPECT_EQ(BytesOf(*chunk), payload);
}

// In three slices, cut at every pair of places: in the prefix, in elements, and between them.
TYPED_TEST(DecodeChunkTest, ReadsAMessageHoweverItIsSliced) {
  const std::string payload = PayloadOf(Elements(10));
  const std::string bytes = Generated<TypeParam>(300, payload);
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      const auto chunk = DecodeChunk<TypeParam>(Sliced(bytes, {first, second}));
      ASSERT_THAT(chunk, IsOk());
      ASSERT_EQ(chunk->offset, 300u);
      ASSERT_EQ(BytesOf(*chunk), payload);
    }
  }
}

TYPED_TEST(DecodeChunkTest, ReadsAMessageOfSlicesOfOneByte) {
  const std::string payload = PayloadOf(Elements(10));
  const std::string bytes = Generated<TypeParam>(300, payload);
  std::vector<size_t> ends(bytes.size());
  for (size_t i = 0; i < ends.size(); ++i) ends[i] = i;
  const auto chunk = DecodeChunk<TypeParam>(Sliced(bytes, ends));
  ASSERT_THAT(chunk, IsOk());
  EXPECT_EQ(BytesOf(*chunk), payload);
}

TYPED_TEST(DecodeChunkTest, ReadsThePayloadWhereItLies) {
  const grpc::ByteBuffer message = Whole(Generated<TypeParam>(3, PayloadOf(Elements(1000))));
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(message.Dump(&slices).ok());
  const auto chunk = DecodeChunk<TypeParam>(message);
  ASSERT_THAT(chunk, IsOk());
  ASSERT_EQ(chunk->pieces.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(chunk->pieces[0].data()), slices[0].end() - 4000);
}

TYPED_TEST(DecodeChunkTest, AChunkOutlivesItsMessage) {
  const std::string payload = PayloadOf(Elements(100));
  absl::StatusOr<TensorChunk> chunk;
  {
    const grpc::ByteBuffer message = Sliced(Generated<TypeParam>(3, payload), {99});
    chunk = DecodeChunk<TypeParam>(message);
  }
  ASSERT_THAT(chunk, IsOk());
  EXPECT_EQ(BytesOf(*chunk), payload);
}

TYPED_TEST(DecodeChunkTest, RefusesAPayloadOfBrokenElements) {
  for (const size_t bytes : {1, 2, 3, 5, 4095}) {
    EXPECT_THAT(
        DecodeChunk<TypeParam>(Whole(Generated<TypeParam>(100, std::string(bytes, 'x')))),
        IsError(Reason::kBadChunk, HasSubstr(absl::StrCat("chunk at offset 100 has ", bytes,
                                                          " bytes, expected a multiple of 4"))));
  }
}

TYPED_TEST(DecodeChunkTest, SaysThatAMessageHoldsNoChunk) {
  TypeParam message;
  EXPECT_THAT(DecodeChunk<TypeParam>(Whole("")),
              IsError(Reason::kBadArgument, HasSubstr("holds no chunk")));
  message.mutable_header();
  EXPECT_THAT(DecodeChunk<TypeParam>(Whole(message.SerializeAsString())),
              IsError(Reason::kBadArgument, HasSubstr("holds no chunk")));
}

TYPED_TEST(DecodeChunkTest, NamesTheMessageThatTheBytesAreNot) {
  EXPECT_THAT(
      DecodeChunk<TypeParam>(Whole("not protobuf")),
      IsError(Reason::kBadArgument,
              HasSubstr(absl::StrCat("is not a valid ", TypeParam::descriptor()->full_name()))));
}

// Whether it is one that is taken, be it encoded or not.
bool IsGood(const v1::TensorChunk& chunk) {
  if (chunk.has_shared()) return false;
  if (chunk.has_encoding()) return chunk.has_checksum() && FromProto(chunk.encoding()).ok();
  if (chunk.of_vector()) return false;
  return chunk.payload().size() % sizeof(float) == 0 &&
         (!chunk.has_checksum() || chunk.checksum() == Checksum(chunk.payload()));
}

// What the generated parser makes of the bytes is the truth.
template <typename Message>
void ExpectAsGenerated(const std::string& bytes, const std::vector<size_t>& ends) {
  Message message;
  const bool legal = message.ParseFromString(bytes) && message.has_chunk();
  const auto chunk = DecodeChunk<Message>(Sliced(bytes, ends));
  if (!legal || !IsGood(message.chunk())) {
    ASSERT_FALSE(chunk.ok());
    return;
  }
  ASSERT_THAT(chunk, IsOk());
  ASSERT_EQ(chunk->offset, message.chunk().offset());
  ASSERT_EQ(chunk->encoded.has_value(), message.chunk().has_encoding());
  ASSERT_EQ(chunk->encoded.has_value() ? std::string(chunk->encoded->payload) : BytesOf(*chunk),
            message.chunk().payload());
}

// Legal forms that generated code does not write.
TYPED_TEST(DecodeChunkTest, ReadsEveryLegalForm) {
  const std::string four("\x01\x02\x03\x04", 4);
  const std::string payload = "\x7a\x04" + four;
  const std::vector<std::string> fields = {
      payload + "\x08\x05",                        // the offset last
      std::string("\x08\x85\x00", 3) + payload,    // a longer varint than needed
      "\x08\x05\x08\x06" + payload,                // twice: the last counts
      "\x08\x05" + payload + "\x7a\x04" + "abcd",  // as above
      "\x08\x05\x10\x07" + payload,                // an unknown field
      std::string("\x08\x00", 2) + payload,        // a zero, written out
      "\x08\x05",                                  // no payload
      "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + payload,
      "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + payload,  // more than 64 bits
  };
  for (const std::string& field : fields) {
    const std::string chunk =
        absl::StrCat("\x12", std::string(1, static_cast<char>(field.size())), field);
    ExpectAsGenerated<TypeParam>(chunk, {});
    ExpectAsGenerated<TypeParam>(absl::StrCat(chunk, std::string("\x0a\x00", 2)), {});
    ExpectAsGenerated<TypeParam>(absl::StrCat(chunk, chunk), {});
    ExpectAsGenerated<TypeParam>(absl::StrCat("\x18\x01", chunk), {});
  }
}

// Messages that a few random bytes were changed in, cut anywhere, sliced anywhere.
TYPED_TEST(DecodeChunkTest, AgreesWithTheGeneratedParserAboutDamagedMessages) {
  SCOPED_TRACE(HowToRepeat());
  std::mt19937 random(RunSeed());
  const auto below = [&random](size_t bound) { return random() % bound; };
  for (int i = 0; i < 20000; ++i) {
    TypeParam message;
    message.mutable_chunk()->set_offset(random() >> below(32));
    message.mutable_chunk()->set_payload(std::string(below(40), 'x'));
    if (below(2) == 0) message.mutable_chunk()->set_checksum(Checksum(message.chunk().payload()));
    std::string bytes = message.SerializeAsString();
    for (size_t changes = below(4); changes > 0 && !bytes.empty(); --changes) {
      bytes[below(std::min<size_t>(bytes.size(), 16))] = static_cast<char>(random());
    }
    if (below(4) == 0) bytes.resize(below(bytes.size() + 1));
    const size_t first = below(bytes.size() + 1);
    const size_t second = first + below(bytes.size() - first + 1);
    ExpectAsGenerated<TypeParam>(bytes, {first, second});
    if (this->HasFatalFailure()) FAIL() << "message " << i;
  }
}

// ---- Shared memory ----

TEST(EncodeSharedChunkTest, WritesTheBytesThatGeneratedCodeWrites) {
  v1::PullParamsResponse message;
  message.mutable_chunk()->set_offset(7);
  message.mutable_chunk()->mutable_shared()->set_first(1000);
  message.mutable_chunk()->mutable_shared()->set_count(3);
  EXPECT_EQ(BytesOf(EncodeSharedChunk(7, 1000, 3)), message.SerializeAsString());
}

class DecodeSharedChunkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto memory = SharedMemory::Create(10);
    ASSERT_THAT(memory, IsOk());
    memory_ = *std::move(memory);
    auto view = SharedMemoryView::Open(memory_->name());
    ASSERT_THAT(view, IsOk());
    view_ = *std::move(view);
  }

  absl::StatusOr<TensorChunk> Decode(uint64_t first, uint64_t count) const {
    return DecodeChunk<v1::PushGradientsRequest>(EncodeSharedChunk(5, first, count), view_);
  }

  std::shared_ptr<SharedMemory> memory_;
  SenderMemory view_;
};

TEST_F(DecodeSharedChunkTest, RefersToTheSendersMemory) {
  memory_->floats()[9] = 2.5f;
  const auto chunk = Decode(8, 2);
  ASSERT_THAT(chunk, IsOk());
  EXPECT_EQ(chunk->offset, 5u);
  ASSERT_EQ(chunk->pieces.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(chunk->pieces[0].data()), view_->floats().data() + 8);
  EXPECT_EQ(chunk->pieces[0][1].value, 2.5f);
  EXPECT_TRUE(chunk->foreign);
}

TEST_F(DecodeSharedChunkTest, KeepsTheMemoryAsLongAsItIsUsed) {
  auto chunk = Decode(0, 10);
  const std::weak_ptr<const SharedMemoryView> memory = view_;
  view_ = nullptr;
  EXPECT_FALSE(memory.expired());
  chunk = absl::UnknownError("gone");
  EXPECT_TRUE(memory.expired());
}

TEST_F(DecodeSharedChunkTest, RefusesElementsThatAreNotInTheMemory) {
  const auto not_there = IsError(Reason::kBadChunk, HasSubstr("of the 10 that are shared"));
  EXPECT_THAT(Decode(0, 11), not_there);
  EXPECT_THAT(Decode(10, 1), not_there);
  EXPECT_THAT(Decode(11, 0), not_there);
  EXPECT_THAT(Decode(kLargest, 1), not_there);
  EXPECT_THAT(Decode(1, kLargest), not_there);
}

TEST_F(DecodeSharedChunkTest, RefusesAReferenceBesideAPayload) {
  v1::PushGradientsRequest message;
  message.mutable_chunk()->mutable_shared()->set_count(1);
  message.mutable_chunk()->set_payload("abcd");
  EXPECT_THAT(DecodeChunk<v1::PushGradientsRequest>(Whole(message.SerializeAsString()), view_),
              IsError(Reason::kBadChunk, HasSubstr("chunk at offset 0 has 4 bytes and says")));
}

TEST_F(DecodeSharedChunkTest, RefusesAReferenceOfASenderThatSharesNothing) {
  EXPECT_THAT(DecodeChunk<v1::PushGradientsRequest>(EncodeSharedChunk(0, 0, 1)),
              IsError(Reason::kBadChunk, HasSubstr("of the 0 that are shared")));
}

// ---- Other messages ----

TEST(MessageTest, SurvivesTheRoundTripHoweverItIsSliced) {
  v1::PullParamsRequest request;
  request.set_session(4711);
  request.set_min_step(3);
  const std::string bytes = BytesOf(EncodeMessage(request));
  EXPECT_EQ(bytes, request.SerializeAsString());
  v1::PullParamsRequest read;
  ASSERT_TRUE(DecodeMessage(Sliced(bytes, {1, 2, 3}), &read));
  EXPECT_EQ(read.SerializeAsString(), bytes);
}

TEST(MessageTest, IsNotMadeOfOtherBytes) {
  v1::PullParamsRequest read;
  EXPECT_FALSE(DecodeMessage(Whole("not protobuf"), &read));
  EXPECT_TRUE(DecodeMessage(Whole(""), &read));
}

}  // namespace
}  // namespace sluice
