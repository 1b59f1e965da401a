#include "common/base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace sluice {
namespace {

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    const ssize_t got = getrandom(&bytes[filled], count - filled, 0);
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      std::abort();  // without random numbers there are no secrets
    }
  }
  return bytes;
}

}  // namespace

std::string RandomHex(int bytes) { return absl::BytesToHexString(RandomBytes(bytes)); }

ProcessNonce RandomNonce() {
  uint64_t value = 0;
  for (const char byte : RandomBytes(sizeof(value))) {
    value = value << 8 | static_cast<unsigned char>(byte);
  }
  return ProcessNonce(value == 0 ? 1 : value);
}

}  // namespace sluice
