// Which ranks of a launch serve. Rank 0 chooses from what the ranks have noted, and tells all.

#ifndef SLUICE_SERVER_PROGRAM_SERVER_RANKS_H_
#define SLUICE_SERVER_PROGRAM_SERVER_RANKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/launch/rank_note.h"

namespace sluice {

// The ranks of `servers` servers, rising; the first one is 0. `notes` are by rank, at least as many
// as servers.
//
// The servers are spread over the nodes, so that each has a network link of its own: each node gets
// one, then each a second one, and so on, in the order of the nodes' lowest ranks. A node's servers
// are its lowest ranks. On one node these are the first ranks. They are also the first ranks if a
// rank's program only serves, because the user has then placed it.
std::vector<uint32_t> ChooseServerRanks(const std::vector<RankNote>& notes, uint32_t servers);

// INVALID_ARGUMENT if two workers of the launch were given one name. `server_ranks` rise.
absl::Status CheckNames(const std::vector<RankNote>& notes,
                        const std::vector<uint32_t>& server_ranks);

// Decodes the ranks' notes, which are in the order of ranks. DATA_LOSS if a text is not a note.
absl::StatusOr<std::vector<RankNote>> DecodeNotes(const std::vector<std::string>& notes);

// The index of this rank among those that serve, or among those that do not. Absent if it is one of
// the others. `server_ranks` rise.
absl::optional<uint32_t> ServerIndex(const std::vector<uint32_t>& server_ranks, uint32_t rank);
absl::optional<uint32_t> WorkerIndex(const std::vector<uint32_t>& server_ranks, uint32_t rank);

}  // namespace sluice

#endif  // SLUICE_SERVER_PROGRAM_SERVER_RANKS_H_
