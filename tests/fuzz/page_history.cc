// Files that are taken for the history of the live page: refused, or read as what is written, and
// read again, as the same; and the server goes on from it.
#include <glog/logging.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/little_endian.h"
#include "common/encoding/checksum.h"
#include "server/web/history/history.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

// The file whose numbers and texts these are, with the first line and the checksum that fit.
std::string FileOf(absl::string_view body) {
  const std::string empty = History().Encode();
  return absl::StrCat(empty.substr(0, empty.find('\n') + 1), LittleEndian64(Checksum(body)), body);
}

// A second of a worker's training.
void GoOn(History& history) {
  history.BeginJob("job");
  HistorySample sample;
  sample.values[kTime] = 1e9;
  sample.losses[history.LaneOf("w", {"w"}) % kLanes] = 0.5f;
  history.Add(sample);
  history.Add({1e9, 7, "joined", "w"});
  CHECK(history.Rows().back().values[kTime] == 1e9);
  CHECK(history.events().back().step == 7);
  CHECK(history.events().size() <= History::kMostEvents);
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const bool sealed = input.Byte() % 8 != 0;
  const std::string file = sealed ? FileOf(input.Rest()) : std::string(input.Rest());
  History history;
  const absl::Status read = history.Decode(file);
  if (read.ok()) {
    const std::string written = history.Encode();
    History again;
    CHECK(again.Decode(written).ok());
    CHECK(again.Encode() == written);
  } else {
    CheckRefusal(read, {absl::StatusCode::kDataLoss});
    CHECK(history.Encode() == History().Encode());
  }
  GoOn(history);
}

}  // namespace sluice
