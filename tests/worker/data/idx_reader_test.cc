#include "worker/data/idx_reader.h"

#include <zlib.h>

#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::vector<uint8_t>;

// Two rows of three: the header ends at byte 12, the file at byte 18.
const Bytes kMatrix = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 11, 12, 13, 14, 15};
constexpr size_t kMatrixHeader = 12;

Bytes Join(Bytes head, const Bytes& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

Bytes Prefix(const Bytes& bytes, size_t size) { return Bytes(bytes.begin(), bytes.begin() + size); }

Bytes Gzip(Bytes bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes compressed(deflateBound(&stream, bytes.size()));
  stream.next_in = bytes.data();
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = compressed.data();
  stream.avail_out = static_cast<uInt>(compressed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

// Writes a file of the running test's own and returns its path.
std::string WriteFile(const Bytes& bytes) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/",
                   ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".idx");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

absl::StatusOr<IdxArray> ReadBytes(const Bytes& bytes, int rank = 2) {
  return ReadIdx(WriteFile(bytes), rank);
}

// The error of a file "digits" with these bytes.
absl::Status Parse(const Bytes& bytes, int rank = 2) {
  const std::string path = WriteFile(bytes);
  const absl::Status status = ReadIdx(path, rank).status();
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{path, "digits"}}));
}

TEST(IdxReaderTest, ReadsPlainAndGzippedFilesAlike) {
  for (const Bytes& bytes : {kMatrix, Gzip(kMatrix)}) {
    const absl::StatusOr<IdxArray> array = ReadBytes(bytes);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_THAT(array->dims, ElementsAre(2, 3));
    EXPECT_THAT(array->data, ElementsAre(10, 11, 12, 13, 14, 15));
  }
}

TEST(IdxReaderTest, ReadsArraysLargerThanItsBuffersUnchanged) {
  Bytes bytes = {0, 0, 8, 1, 0, 0x0f, 0x42, 0x40};  // 1,000,000 elements
  for (uint32_t i = 0; i < 1000000; ++i)
    bytes.push_back(static_cast<uint8_t>(i * 2654435761u >> 24));
  const Bytes elements(bytes.begin() + 8, bytes.end());
  for (const Bytes& form : {bytes, Gzip(bytes)}) {
    const absl::StatusOr<IdxArray> array = ReadBytes(form, 1);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_TRUE(array->data == elements);
  }
}

TEST(IdxReaderTest, ReadsGzipOfSeveralMembers) {
  const Bytes tail(kMatrix.begin() + 7, kMatrix.end());
  const absl::StatusOr<IdxArray> array = ReadBytes(Join(Gzip(Prefix(kMatrix, 7)), Gzip(tail)));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->data, ElementsAre(10, 11, 12, 13, 14, 15));
}

TEST(IdxReaderTest, CallsAFileCutAnywhereTruncated) {
  for (size_t size = 0; size < kMatrix.size(); ++size) {
    const Bytes cut = Prefix(kMatrix, size);
    const std::string end = absl::StrCat("the file ends at byte ", size, ", expected ");
    EXPECT_EQ(Parse(cut).code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(Parse(cut).message()), HasSubstr(end));
    const absl::Status read = ReadBytes(cut).status();
    EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(read.message()), HasSubstr(end));
  }
}

TEST(IdxReaderTest, CallsAGzipFileCutAnywhereTruncated) {
  const Bytes gzip = Gzip(kMatrix);
  for (size_t size = 1; size < gzip.size(); ++size) {
    const absl::Status read = ReadBytes(Prefix(gzip, size)).status();
    EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(read.message()),
                HasSubstr(absl::StrCat("ends at compressed byte ", size)));
  }
}

TEST(IdxReaderTest, SaysWhereATruncatedFileShouldHaveEnded) {
  EXPECT_EQ(Parse(Prefix(kMatrix, 17)),
            absl::DataLossError("digits: the file ends at byte 17, expected 18 bytes for 2x3 "
                                "elements; it is truncated: copy or install it again"));
  EXPECT_EQ(Parse(Prefix(kMatrix, 11)),
            absl::DataLossError("digits: the file ends at byte 11, expected a header of 12 bytes; "
                                "it is truncated: copy or install it again"));
}

TEST(IdxReaderTest, NamesEachWrongByteOfTheMagic) {
  for (size_t i = 0; i < 4; ++i) {
    Bytes bytes = kMatrix;
    bytes[i] ^= 0x40;
    EXPECT_EQ(Parse(bytes).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Parse(bytes).message()),
                HasSubstr(absl::StrCat("digits: byte ", i, " is 0x4")));
    EXPECT_EQ(ReadBytes(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(IdxReaderTest, SaysWhichRankWasExpected) {
  EXPECT_EQ(Parse(kMatrix, 3),
            absl::InvalidArgumentError(
                "digits: byte 3 is 0x02, expected 0x03 (the rank); an IDX file of unsigned bytes "
                "and rank 3 begins with 00 00 08 03"));
}

TEST(IdxReaderTest, CallsForeignBytesForeignHoweverFew) {
  for (const Bytes& foreign : {Bytes{'P'}, Bytes{'P', 'K', 3, 4}, Bytes(100, '<')}) {
    EXPECT_EQ(Parse(foreign).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReadBytes(foreign).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReadBytes(Gzip(foreign)).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(IdxReaderTest, RefusesRanksNoFileCanHave) {
  for (int rank : {-1, 0, 256}) {
    EXPECT_EQ(Parse(kMatrix, rank).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReadIdx("absent", rank).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(IdxReaderTest, RefusesADimensionOfZero) {
  Bytes bytes = kMatrix;
  bytes[11] = 0;
  EXPECT_EQ(Parse(bytes),
            absl::InvalidArgumentError("digits: dimension 1 at byte 8 is 0, expected at least 1"));
}

TEST(IdxReaderTest, RefusesDimensionsAboveTheLimitBeforeAllocating) {
  Bytes bytes = {0, 0, 8, 2, 0, 1, 0, 0, 0, 0, 0x40, 0x01};  // 65536 x 16385
  const std::string message =
      ": the dimensions at byte 4 are 65536x16385, expected a product of at most 1073741824";
  EXPECT_EQ(Parse(bytes), absl::InvalidArgumentError("digits" + message));
  for (const Bytes& form : {bytes, Gzip(bytes)}) {
    const std::string path = WriteFile(form);
    EXPECT_EQ(ReadIdx(path, 2).status(), absl::InvalidArgumentError(path + message));
  }
}

TEST(IdxReaderTest, RefusesDimensionsWhoseProductOverflows) {
  // 2^31 * 2^31 * 2^2 is 0 in 64 bits.
  const Bytes bytes = {0, 0, 8, 3, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 4};
  EXPECT_EQ(Parse(bytes, 3).code(), absl::StatusCode::kInvalidArgument);
  // 2^16 four times is 2^64.
  const Bytes quad = {0, 0, 8, 4, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0};
  EXPECT_EQ(Parse(quad, 4).code(), absl::StatusCode::kInvalidArgument);
}

TEST(IdxReaderTest, CallsAFileShorterThanItsLargestLawfulDimensionsTruncated) {
  const Bytes bytes = {0, 0, 8, 1, 0x40, 0, 0, 0, 7};  // declares 2^30 elements, holds one
  EXPECT_EQ(Parse(bytes, 1).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadBytes(bytes, 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST(IdxReaderTest, RefusesBytesAfterTheElements) {
  const Bytes bytes = Join(kMatrix, {0});
  const std::string message =
      ": byte 18 follows the last element, expected the file of 2x3 elements to end there";
  EXPECT_EQ(Parse(bytes), absl::InvalidArgumentError("digits" + message));
  for (const Bytes& form : {bytes, Gzip(bytes)}) {
    const std::string path = WriteFile(form);
    EXPECT_EQ(ReadIdx(path, 2).status(), absl::InvalidArgumentError(path + message));
  }
}

TEST(IdxReaderTest, RefusesForeignBytesAfterTheGzipStream) {
  const Bytes gzip = Gzip(kMatrix);
  const absl::Status read = ReadBytes(Join(gzip, {'j', 'u', 'n', 'k'})).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.message()), HasSubstr("incorrect header check"));
}

// The bomb's checksum is wrong. A reader that inflates too much would report that instead.
TEST(IdxReaderTest, StopsInflatingABombOneByteAfterItsDeclaredSize) {
  Bytes bomb = Gzip(Join(kMatrix, Bytes(64 << 20, 0)));
  ASSERT_LT(bomb.size(), 100000u);
  bomb[bomb.size() - 8] ^= 1;
  const std::string path = WriteFile(bomb);
  EXPECT_EQ(ReadIdx(path, 2).status(),
            absl::InvalidArgumentError(path + ": byte 18 follows the last element, expected the "
                                              "file of 2x3 elements to end there"));
}

TEST(IdxReaderTest, ChecksTheGzipChecksum) {
  Bytes gzip = Gzip(kMatrix);
  gzip[gzip.size() - 8] ^= 1;
  const absl::Status read = ReadBytes(gzip).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(read.message()), HasSubstr("incorrect data check"));
}

TEST(IdxReaderTest, NeverTakesAGzipFileWithAFlippedByteForAnother) {
  const Bytes gzip = Gzip(kMatrix);
  for (size_t i = 0; i < gzip.size(); ++i) {
    Bytes flipped = gzip;
    flipped[i] ^= 0xff;
    const absl::StatusOr<IdxArray> array = ReadBytes(flipped);
    // Bytes 4 to 9 hold the time, hints and the origin, which do not touch the content.
    const bool harmless = i >= 4 && i <= 9;
    EXPECT_EQ(array.ok(), harmless) << i;
    if (!array.ok()) continue;
    EXPECT_THAT(array->data, ElementsAre(10, 11, 12, 13, 14, 15));
  }
}

TEST(IdxReaderTest, RefusesEveryFlippedHeaderByteAndKeepsEveryFlippedElement) {
  for (size_t i = 0; i < kMatrix.size(); ++i) {
    Bytes flipped = kMatrix;
    flipped[i] ^= 0xff;
    const absl::StatusOr<IdxArray> array = ReadBytes(flipped);
    EXPECT_EQ(array.ok(), i >= kMatrixHeader) << i;
    if (!array.ok()) continue;
    EXPECT_EQ(array->data, Bytes(flipped.begin() + kMatrixHeader, flipped.end()));
  }
}

TEST(IdxReaderTest, CallsAMissingFileNotFound) {
  const std::string path = ::testing::TempDir() + "/absent.idx";
  const absl::Status read = ReadIdx(path, 1).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(read.message()), HasSubstr(path));
}

TEST(IdxReaderTest, TellsThatAFolderCannotBeRead) {
  const absl::Status read = ReadIdx(::testing::TempDir(), 1).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(read.message()), HasSubstr("is a directory, expected a regular file"));
}

}  // namespace
}  // namespace sluice
