// The text of a server's state, which is all of a checkpoint but its tensors: refused, or read as a
// state that is written, and read again, as the same, also with tensors.
#include "server/durable/format/saved_state.h"

#include <glog/logging.h>

#include <memory>
#include <set>
#include <string>

#include "tests/fuzz/oracles/checkpoint_check.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

constexpr uint64_t kMostValues = 4096;

FloatBuffer Ascending(uint64_t size) {
  FloatBuffer values(size);
  float next = 0;
  for (float& value : values.span()) value = next++;
  return values;
}

// An optimizer's have names that keep their tensors' apart.
bool NamesSlotsWell(const ShardCheckpoint& checkpoint) {
  std::set<std::string> names;
  for (const SlotCheckpoint& slot : checkpoint.slots) {
    if (slot.name.find(':') != std::string::npos || !names.insert(slot.name).second) return false;
  }
  return true;
}

}  // namespace

void Try(absl::string_view text) {
  auto checkpoint = DecodeSavedState(text);
  if (!checkpoint.ok()) return CheckRefusal(checkpoint.status(), {absl::StatusCode::kDataLoss});
  const std::string state = EncodeSavedState(*checkpoint);
  const auto again = DecodeSavedState(state);
  CHECK(again.ok()) << again.status() << ": " << state;
  CHECK(EncodeSavedState(*again) == state) << state;

  const uint64_t size = checkpoint->layout->size();
  if (size * (1 + checkpoint->slots.size()) > kMostValues || !NamesSlotsWell(*checkpoint)) return;
  const auto parameters = std::make_shared<Snapshot>();
  parameters->values = Ascending(size);
  checkpoint->parameters = parameters;
  for (SlotCheckpoint& slot : checkpoint->slots) slot.values = Ascending(size);
  CheckComesBack(*checkpoint);
}

}  // namespace sluice
