#include "common/launch/rank_note.h"

#include "absl/strings/str_cat.h"
#include "sluice/v1/bootstrap.pb.h"

namespace sluice {

std::string EncodeNote(const RankNote& note) {
  v1::RankNote message;
  message.set_node(static_cast<uint32_t>(note.node));
  message.set_only_serves(note.only_serves);
  for (const std::string& host : note.hosts) message.add_hosts(host);
  message.set_name(note.name);
  return message.SerializeAsString();
}

absl::StatusOr<RankNote> DecodeNote(absl::string_view bytes) {
  v1::RankNote message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat(
        "a rank sent ", bytes.size(),
        " bytes that are no note to rank 0; do all ranks run the same version of Sluice?"));
  }
  RankNote note;
  note.node = static_cast<int>(message.node());
  note.only_serves = message.only_serves();
  note.hosts.assign(message.hosts().begin(), message.hosts().end());
  note.name = message.name();
  return note;
}

}  // namespace sluice
