#include "server/program/server_ranks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"

namespace sluice {

std::vector<uint32_t> ChooseServerRanks(const std::vector<RankNote>& notes, uint32_t servers) {
  std::vector<uint32_t> ranks(notes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const bool placed = std::any_of(notes.begin(), notes.end(),
                                  [](const RankNote& note) { return note.only_serves; });
  if (!placed) {
    std::vector<std::pair<uint32_t, int>> turns;  // by rank: its place on its node, and the node
    std::map<int, uint32_t> on_node;
    for (const RankNote& note : notes) turns.emplace_back(on_node[note.node]++, note.node);
    std::sort(ranks.begin(), ranks.end(),
              [&turns](uint32_t a, uint32_t b) { return turns[a] < turns[b]; });
  }
  ranks.resize(servers);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

absl::Status CheckNames(const std::vector<RankNote>& notes,
                        const std::vector<uint32_t>& server_ranks) {
  std::map<std::string, uint32_t> ranks;
  for (uint32_t rank = 0; rank < notes.size(); ++rank) {
    const absl::optional<uint32_t> index = WorkerIndex(server_ranks, rank);
    if (!index.has_value()) continue;
    const std::string& given = notes[rank].name;
    const auto [other, is_new] =
        ranks.emplace(given.empty() ? absl::StrCat("worker-", *index) : given, rank);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--name: ranks ", other->second, " and ", rank, " are both named \"", Shown(other->first),
        "\"; leave --name out, so that each worker is named by its place, or give each rank "
        "another"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RankNote>> DecodeNotes(const std::vector<std::string>& notes) {
  std::vector<RankNote> decoded;
  for (const std::string& note : notes) {
    auto one = DecodeNote(note);
    if (!one.ok()) return one.status();
    decoded.push_back(*std::move(one));
  }
  return decoded;
}

absl::optional<uint32_t> ServerIndex(const std::vector<uint32_t>& server_ranks, uint32_t rank) {
  const auto found = std::lower_bound(server_ranks.begin(), server_ranks.end(), rank);
  if (found == server_ranks.end() || *found != rank) return absl::nullopt;
  return static_cast<uint32_t>(found - server_ranks.begin());
}

absl::optional<uint32_t> WorkerIndex(const std::vector<uint32_t>& server_ranks, uint32_t rank) {
  const auto found = std::lower_bound(server_ranks.begin(), server_ranks.end(), rank);
  if (found != server_ranks.end() && *found == rank) return absl::nullopt;
  return rank - static_cast<uint32_t>(found - server_ranks.begin());
}

}  // namespace sluice
