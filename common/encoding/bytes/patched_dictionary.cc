#include "common/encoding/bytes/patched_dictionary.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "common/base/little_endian.h"
#include "common/tensor/vector_clones.h"

namespace sluice {
namespace {

// A frame has the number of bytes, the dictionary, a 4-bit code for each byte, and then each byte
// that is not in the dictionary. FORMAT.md in the parent folder specifies it.
constexpr size_t kWords = 15;
constexpr size_t kHeader = sizeof(uint32_t) + kWords;
constexpr uint8_t kPatched = kWords;

// The number of codes that are packed and unpacked at once.
constexpr size_t kGroup = 8;
// A multiple of kGroup; a block stays in the first-level cache.
constexpr size_t kBlock = 1024;

using Dictionary = std::array<uint8_t, kWords>;

constexpr uint64_t InEachByte(uint64_t number) { return number * 0x0101010101010101u; }

// Loads at most 8 bytes; the first becomes the lowest.
SLUICE_LOOP_BODY uint64_t LoadGroup(const void* from, size_t bytes) {
  uint64_t group = 0;
  std::memcpy(&group, from, bytes);
  return group;
}

constexpr size_t PackedSize(size_t codes) { return (codes + 1) / 2; }

// Finds the most frequent bytes. Counts only a sample if there are many.
Dictionary MakeDictionary(absl::string_view bytes) {
  constexpr size_t kMany = 2048;
  constexpr size_t kPiece = 64;
  constexpr size_t kEvery = 509;  // prime, so that all columns of a matrix are sampled
  const size_t every = bytes.size() < kMany ? kPiece : kEvery;
  std::array<uint32_t, 256> counts = {};
  for (size_t begin = 0; begin < bytes.size(); begin += every) {
    for (char byte : bytes.substr(begin, kPiece)) ++counts[static_cast<uint8_t>(byte)];
  }
  std::array<uint8_t, 256> by_frequency;
  std::iota(by_frequency.begin(), by_frequency.end(), uint8_t{0});
  std::partial_sort(
      by_frequency.begin(), by_frequency.begin() + kWords, by_frequency.end(),
      [&](uint8_t a, uint8_t b) { return counts[a] != counts[b] ? counts[a] > counts[b] : a < b; });
  Dictionary dictionary;
  std::copy_n(by_frequency.begin(), kWords, dictionary.begin());
  return dictionary;
}

// The loop over words is the inner one and unrolled, so that a vector of bytes is compared with
// each.
SLUICE_VECTOR_CLONES
void FindCodes(const char* __restrict bytes, size_t count, const uint8_t* words,
               uint8_t* __restrict codes) {
  uint8_t dictionary[kWords];
  std::memcpy(dictionary, words, kWords);
  for (size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    uint8_t code = kPatched;
#pragma GCC unroll 15
    for (uint8_t word = 0; word < kWords; ++word) code = byte == dictionary[word] ? word : code;
    codes[i] = code;
  }
}

// Packs the 8 codes of a group, one per byte, into 4 bytes; the first code becomes the lowest.
uint32_t PackGroup(uint64_t codes) {
  codes = (codes | codes >> 4) & 0x00ff00ff00ff00ffu;
  codes = (codes | codes >> 8) & 0x0000ffff0000ffffu;
  return static_cast<uint32_t>(codes | codes >> 16);
}

// Puts each byte, which has two codes, into 16 bits of its own.
uint64_t SpreadPairs(uint64_t packed) {
  packed = (packed | packed << 16) & 0x0000ffff0000ffffu;
  return (packed | packed << 8) & 0x00ff00ff00ff00ffu;
}

uint64_t SpreadCodes(uint64_t pairs) { return (pairs | pairs << 4) & InEachByte(0xf); }

// Returns bit 4 of each byte whose code means that the byte is not in the dictionary.
uint64_t PatchedIn(uint64_t codes) { return (codes + InEachByte(1)) & InEachByte(kPatched + 1); }

// The first such byte; `patched` comes from PatchedIn() and is not 0.
size_t FirstPlace(uint64_t patched) { return static_cast<size_t>(__builtin_ctzll(patched)) / 8; }

// The two bytes for each pair of codes, the first in the lower byte. Bytes that are not in the
// dictionary are overwritten later.
std::array<uint16_t, 256> PairsOf(const char* words) {
  std::array<uint16_t, 256> pairs;
  const auto word = [&](size_t code) -> uint16_t {
    return code == kPatched ? 0 : static_cast<uint8_t>(words[code]);
  };
  for (size_t both = 0; both < pairs.size(); ++both) {
    pairs[both] = static_cast<uint16_t>(word(both & 0xf) | word(both >> 4) << 8);
  }
  return pairs;
}

// The bytes that are not in the dictionary: the next one, and the end.
template <typename Char>
struct Patches {
  Char* next;
  Char* end;

  bool Have(uint64_t patched) const {
    const auto left = static_cast<size_t>(end - next);
    return left >= kGroup || left >= static_cast<size_t>(__builtin_popcountll(patched));
  }
};

// Writes a group's codes and its bytes that are not in the dictionary. Returns false if there is
// not enough space.
SLUICE_LOOP_BODY bool PutGroup(const uint8_t* codes, const char* bytes, size_t count, char* packed,
                               Patches<char>& patches) {
  const uint64_t group = LoadGroup(codes, count);
  const uint32_t four = PackGroup(group);
  std::memcpy(packed, &four, PackedSize(count));
  uint64_t patched = PatchedIn(group);
  if (!patches.Have(patched)) return false;
  for (; patched != 0; patched &= patched - 1) *patches.next++ = bytes[FirstPlace(patched)];
  return true;
}

// Reverses PutGroup(). Returns false if there are fewer bytes than the codes need.
SLUICE_LOOP_BODY bool TakeGroup(const char* packed, const std::array<uint16_t, 256>& pairs,
                                size_t count, Patches<const char>& patches, char* bytes) {
  const uint64_t there = count == kGroup ? ~uint64_t{0} : (uint64_t{1} << (4 * count)) - 1;
  const uint64_t both = SpreadPairs(LoadGroup(packed, PackedSize(count)) & there);
  uint64_t group = 0;
  for (size_t at = 0; at < 64; at += 16) group |= uint64_t{pairs[both >> at & 0xff]} << at;
  std::memcpy(bytes, &group, count);
  uint64_t patched = PatchedIn(SpreadCodes(both));
  if (!patches.Have(patched)) return false;
  for (; patched != 0; patched &= patched - 1) bytes[FirstPlace(patched)] = *patches.next++;
  return true;
}

}  // namespace

absl::optional<size_t> PdictCompress(absl::string_view bytes, absl::Span<char> to) {
  const size_t unpatched = kHeader + PackedSize(bytes.size());
  if (to.size() < unpatched) return absl::nullopt;
  const Dictionary dictionary = MakeDictionary(bytes);
  PutLittleEndian(static_cast<uint32_t>(bytes.size()), to.data());
  std::memcpy(to.data() + sizeof(uint32_t), dictionary.data(), kWords);
  char* packed = to.data() + kHeader;
  Patches<char> patches = {to.data() + unpatched, to.data() + to.size()};
  for (size_t begin = 0; begin < bytes.size(); begin += kBlock) {
    const absl::string_view block = bytes.substr(begin, kBlock);
    uint8_t codes[kBlock];
    FindCodes(block.data(), block.size(), dictionary.data(), codes);
    size_t i = 0;
    for (; i + kGroup <= block.size(); i += kGroup, packed += PackedSize(kGroup)) {
      if (!PutGroup(codes + i, block.data() + i, kGroup, packed, patches)) return absl::nullopt;
    }
    const size_t rest = block.size() - i;
    if (rest > 0 && !PutGroup(codes + i, block.data() + i, rest, packed, patches)) {
      return absl::nullopt;
    }
  }
  return static_cast<size_t>(patches.next - to.data());
}

absl::optional<uint64_t> PdictSize(absl::string_view frame) {
  if (frame.size() < kHeader) return absl::nullopt;
  const uint64_t size = FromLittleEndian<uint32_t>(frame);
  const size_t unpatched = kHeader + PackedSize(size);
  if (frame.size() < unpatched || frame.size() - unpatched > size) return absl::nullopt;
  return size;
}

bool PdictDecompress(absl::string_view frame, absl::Span<char> to) {
  if (PdictSize(frame) != to.size()) return false;
  const std::array<uint16_t, 256> pairs = PairsOf(frame.data() + sizeof(uint32_t));
  const char* packed = frame.data() + kHeader;
  Patches<const char> patches = {packed + PackedSize(to.size()), frame.data() + frame.size()};
  size_t i = 0;
  for (; i + kGroup <= to.size(); i += kGroup, packed += PackedSize(kGroup)) {
    if (!TakeGroup(packed, pairs, kGroup, patches, to.data() + i)) return false;
  }
  const size_t rest = to.size() - i;
  if (rest > 0 && !TakeGroup(packed, pairs, rest, patches, to.data() + i)) return false;
  return patches.next == patches.end;
}

}  // namespace sluice
