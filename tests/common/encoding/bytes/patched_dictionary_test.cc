// Frames of 4 bits for each frequent byte: what they are, byte by byte, and what is none.
#include "common/encoding/bytes/patched_dictionary.h"

#include <algorithm>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

// "" if it does not fit in so many bytes.
std::string Frame(const std::string& bytes, size_t room) {
  std::string frame(room, '\x55');
  const auto size = PdictCompress(bytes, absl::MakeSpan(&frame[0], frame.size()));
  return size.has_value() ? frame.substr(0, *size) : "";
}

std::string Frame(const std::string& bytes) { return Frame(bytes, 2 * bytes.size() + 100); }

// What is decompressed lies in memory of its own, so that a sanitizer sees what is written beside.
bool Decompresses(const std::string& frame, std::string* bytes) {
  const auto size = PdictSize(frame);
  if (!size.has_value()) return false;
  bytes->assign(*size, '\x55');
  return PdictDecompress(frame, absl::MakeSpan(&(*bytes)[0], bytes->size()));
}

std::string ThereAndBack(const std::string& bytes) {
  std::string back;
  EXPECT_TRUE(Decompresses(Frame(bytes), &back));
  return back;
}

// Of a size of 0 to 2^16: few frequent bytes, and others.
std::string Skewed(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random() % 20 == 0 ? random() : 0xb8 + random() % 7);
  }
  return bytes;
}

TEST(PatchedDictionaryTest, AFrameIsSizeDictionaryCodesAndWhatHasNone) {
  // 0 to 14 twice, and then what is no more in the dictionary.
  std::string bytes;
  for (int i = 0; i < 30; ++i) bytes += static_cast<char>(i % 15);
  bytes += "\x64\x65";
  bytes += '\x03';
  const std::string expected =
      std::string("\x21\x00\x00\x00", 4) +
      std::string("\x03\x00\x01\x02\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e", 15) +
      std::string("\x21\x03\x54\x76\x98\xba\xdc\x1e\x32\x40\x65\x87\xa9\xcb\xed\xff\x00", 17) +
      "\x64\x65";
  std::string found = Frame(bytes);
  EXPECT_EQ(found, expected);
}

TEST(PatchedDictionaryTest, OfEquallyFrequentBytesTheLowestAreInTheDictionary) {
  const std::string frame = Frame("zyx");
  EXPECT_EQ(frame.substr(4, 15),
            std::string("xyz\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b", 15));
}

TEST(PatchedDictionaryTest, OfManyBytesTheDictionaryGoesByTheFirst64OfEvery509) {
  std::string bytes(2048, 'b');
  for (size_t begin = 0; begin < bytes.size(); begin += 509) bytes.replace(begin, 10, 10, 'a');
  for (size_t begin = 10; begin < bytes.size(); begin += 509) bytes.replace(begin, 54, 54, 'c');
  bytes.resize(2048);
  EXPECT_EQ(Frame(bytes).substr(4, 4), std::string("ca\x00\x01", 4));
  EXPECT_EQ(Frame(bytes.substr(0, 2047)).substr(4, 4), std::string("bca\x00", 4));
}

TEST(PatchedDictionaryTest, GivesBackBytesOfAnySize) {
  for (size_t size = 0; size < 70; ++size) {
    const std::string bytes = Skewed(size, static_cast<uint32_t>(size));
    EXPECT_EQ(ThereAndBack(bytes), bytes) << size;
  }
  for (size_t size : {1023, 1024, 1025, 65536}) {
    const std::string bytes = Skewed(size, 1);
    EXPECT_EQ(ThereAndBack(bytes), bytes) << size;
    EXPECT_LT(Frame(bytes).size(), bytes.size() * 6 / 10 + 40);
  }
}

TEST(PatchedDictionaryTest, GivesBackBytesThatHaveNoCodes) {
  std::string bytes(5000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  EXPECT_EQ(ThereAndBack(bytes), bytes);
}

TEST(PatchedDictionaryTest, WritesNoMoreThanThereIsRoomFor) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string bytes = Skewed(100 + seed, seed);
    const std::string frame = Frame(bytes);
    EXPECT_EQ(Frame(bytes, frame.size()), frame);
    for (size_t room = 0; room < frame.size(); ++room) EXPECT_EQ(Frame(bytes, room), "") << room;
  }
}

TEST(PatchedDictionaryTest, AFrameThatIsCutOrGoesOnIsNone) {
  const std::string frame = Frame(Skewed(200, 3));
  std::string bytes;
  for (size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(Decompresses(frame.substr(0, size), &bytes)) << size;
  }
  EXPECT_FALSE(Decompresses(frame + 'x', &bytes));
}

TEST(PatchedDictionaryTest, AFrameThatSaysAnotherSizeIsNone) {
  const std::string good = Frame(Skewed(200, 3));
  for (int size : {0, 1, 198, 201, 202, 255}) {
    std::string frame = good;
    frame[0] = static_cast<char>(size);
    std::string bytes;
    EXPECT_FALSE(Decompresses(frame, &bytes)) << size;
  }
  std::string huge = good;
  huge[3] = '\x7f';
  EXPECT_EQ(PdictSize(huge), absl::nullopt);
}

// Either it decompresses to as many bytes, all of them written, or not at all.
TEST(PatchedDictionaryTest, AnyChangedByteIsReadOrRefused) {
  const std::string good = Frame(Skewed(90, 5));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int change = 1; change < 256; ++change) {
      std::string frame = good;
      frame[i] = static_cast<char>(frame[i] ^ change);
      std::string once;
      if (!Decompresses(frame, &once)) continue;
      std::string again(once.size(), '\x66');
      ASSERT_TRUE(PdictDecompress(frame, absl::MakeSpan(&again[0], again.size())));
      ASSERT_EQ(once, again);
    }
  }
}

TEST(PatchedDictionaryTest, TheHalfByteBehindAnOddNumberOfCodesIsNotRead) {
  std::string frame = Frame("aab");
  std::string bytes;
  for (int rest = 0; rest < 16; ++rest) {
    frame[4 + 15 + 1] = static_cast<char>(1 | rest << 4);
    ASSERT_TRUE(Decompresses(frame, &bytes)) << rest;
    EXPECT_EQ(bytes, "aab");
  }
}

}  // namespace
}  // namespace sluice
