// At the launch each rank tells rank 0 what this needs to decide which ranks serve.

#ifndef SLUICE_COMMON_LAUNCH_RANK_NOTE_H_
#define SLUICE_COMMON_LAUNCH_RANK_NOTE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct RankNote {
  int node = 0;                         // MpiWorld::node
  bool only_serves = false;             // whether the program is no worker's
  std::vector<std::string> hosts = {};  // by which others may reach a server of this rank
  std::string name = {};                // that it was given as a worker; empty: none
};

// Encodes a note, and decodes it. DATA_LOSS for other bytes.
std::string EncodeNote(const RankNote& note);
absl::StatusOr<RankNote> DecodeNote(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_COMMON_LAUNCH_RANK_NOTE_H_
