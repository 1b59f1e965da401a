#include "worker/client/constant_memory.h"

#include <glog/logging.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/error.h"
#include "common/encoding/checksum.h"
#include "worker/connection/call_retry.h"

namespace sluice {

absl::Status CheckFits(const ConstantMemory& memory, const std::vector<ConstantTensor>& constants) {
  if (memory.size() != constants.size()) {
    return MakeError(Reason::kBadArgument,
                     absl::StrCat("there is memory for ", memory.size(),
                                  " constants, and the layout has ", constants.size()));
  }
  for (size_t i = 0; i < memory.size(); ++i) {
    if (memory[i].size() == constants[i].bytes()) continue;
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("the constant ", Shown(constants[i].name), " has ", constants[i].bytes(),
                     " bytes, and its memory ", memory[i].size()));
  }
  return absl::OkStatus();
}

uint64_t ChecksumOf(const ConstantMemory& memory) {
  Checksummer sum;
  for (const absl::Span<char> part : memory) sum.Add({part.data(), part.size()});
  return sum.Get();
}

absl::StatusOr<uint64_t> OfferConstants(ServerConnection& connection, SessionId session,
                                        const std::string& worker, uint64_t checksum,
                                        const ConstantMemory& memory) {
  for (int corrupt = 0;;) {
    auto offered = connection.OfferConstants(session, checksum, memory);
    const bool is_late = absl::IsDeadlineExceeded(offered.status());
    if (!is_late && !(IsCorrupt(offered.status()) && ++corrupt <= kMaxRepeats)) return offered;
    LOG(WARNING) << Shown(worker)
                 << " offers the model's constants again: " << offered.status().message();
  }
}

absl::StatusOr<uint64_t> PullConstants(ServerConnection& connection, SessionId session,
                                       const ConstantMemory& memory) {
  uint64_t bytes = 0;
  for (const absl::Span<char> part : memory) bytes += part.size();
  auto pulled = connection.PullConstants(session, bytes);
  for (int repeats = 0; IsCorrupt(pulled.status()) && repeats < kMaxRepeats; ++repeats) {
    pulled = connection.PullConstants(session, bytes);
  }
  if (!pulled.ok()) return pulled.status();
  absl::string_view left = pulled->bytes;
  for (const absl::Span<char> part : memory) {
    if (!part.empty()) std::memcpy(part.data(), left.data(), part.size());
    left.remove_prefix(part.size());
  }
  return pulled->checksum;
}

}  // namespace sluice
