#include "common/encoding/checksum.h"

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

// The dispatching header uses the instructions of newer processors, although we compile for old
// ones.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

namespace sluice {

struct Checksummer::State {
  State() : xxh3(XXH3_createState()) { XXH3_64bits_reset(xxh3); }
  ~State() { XXH3_freeState(xxh3); }

  XXH3_state_t* const xxh3;
};

uint64_t Checksum(absl::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

absl::Status CompareChecksums(uint64_t offset, uint64_t found, uint64_t expected) {
  if (found == expected) return absl::OkStatus();
  return MakeError(Reason::kCorruptChunk,
                   absl::StrCat("the chunk at offset ", offset, " has the checksum ",
                                absl::Hex(found, absl::kZeroPad16), ", expected ",
                                absl::Hex(expected, absl::kZeroPad16),
                                "; it changed on its way: repeat the call"));
}

Checksummer::Checksummer() : state_(std::make_unique<State>()) {}

Checksummer::~Checksummer() = default;

void Checksummer::Add(absl::string_view bytes) {
  XXH3_64bits_update(state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksummer::Get() const { return XXH3_64bits_digest(state_->xxh3); }

}  // namespace sluice
