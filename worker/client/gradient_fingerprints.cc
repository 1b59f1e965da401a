#include "worker/client/gradient_fingerprints.h"

#include <cstring>

namespace sluice {
namespace {

// NH, the universal hash of UMAC (RFC 4418), with consecutive numbers as keys. It takes one
// multiplication for two elements, and vectorizes. It detects accidental changes, not attacks.
uint64_t Fingerprint(absl::Span<const float> values) {
  constexpr uint32_t kFirstKey = 0x9e3779b9;
  constexpr uint32_t kSecondKey = 0x85ebca6b;
  const auto word = [&values](size_t i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof(bits));
    return bits;
  };
  uint64_t sum = 0;
  const size_t paired = values.size() / 2 * 2;
  for (size_t i = 0; i < paired; i += 2) {
    const uint32_t a = word(i) + (kFirstKey + static_cast<uint32_t>(i));
    const uint32_t b = word(i + 1) + (kSecondKey + static_cast<uint32_t>(i));
    sum += static_cast<uint64_t>(a) * b;
  }
  if (paired < values.size()) sum += static_cast<uint64_t>(word(paired) + kFirstKey) * kSecondKey;
  return sum;
}

}  // namespace

void GradientFingerprints::Note(uint64_t offset, absl::Span<const float> part) {
  parts_.push_back({offset, part.size(), Fingerprint(part)});
}

absl::optional<uint64_t> GradientFingerprints::FirstChanged(
    absl::Span<const float> gradient) const {
  for (const Part& part : parts_) {
    if (Fingerprint(gradient.subspan(part.offset, part.size)) != part.fingerprint) {
      return part.offset;
    }
  }
  return absl::nullopt;
}

}  // namespace sluice
