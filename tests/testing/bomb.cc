#include "tests/testing/bomb.h"

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "common/encoding/bytes/zstd_codec.h"
#include "gtest/gtest.h"

namespace sluice {

std::string Bomb() {
  std::string frame(1 << 20, '\0');
  const auto size = ZstdCompress(std::string(1 << 28, '\0'), 1, absl::MakeSpan(&frame[0], 1 << 20));
  EXPECT_TRUE(size.has_value());
  frame.resize(size.value_or(0));
  std::string payload(4, '\0');
  const auto length = static_cast<uint32_t>(frame.size());
  std::memcpy(&payload[0], &length, sizeof(length));
  return payload + frame;
}

}  // namespace sluice
