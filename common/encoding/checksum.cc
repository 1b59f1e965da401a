#include "common/encoding/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice {

struct Checksummer::State {
  XXH3_state_t xxh3;
};

uint64_t Checksum(absl::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Checksummer::Checksummer() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }

Checksummer::~Checksummer() = default;

void Checksummer::Add(absl::string_view bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksummer::Get() const { return XXH3_64bits_digest(&state_->xxh3); }

}  // namespace sluice
