// The text of a server's state, which is all of a checkpoint but its tensors: refused, or read as a
// state that is written, and read again, as the same, also with tensors.
#include "server/durable/format/saved_state.h"

#include <glog/logging.h>

#include <memory>
#include <set>
#include <string>

#include "tests/fuzz/image_check.h"
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
bool NamesSlotsWell(const ShardImage& image) {
  std::set<std::string> names;
  for (const SlotImage& slot : image.slots) {
    if (slot.name.find(':') != std::string::npos || !names.insert(slot.name).second) return false;
  }
  return true;
}

}  // namespace

void Try(absl::string_view text) {
  auto image = DecodeSavedState(text);
  if (!image.ok()) return CheckRefusal(image.status(), {absl::StatusCode::kDataLoss});
  const std::string state = EncodeSavedState(*image);
  const auto again = DecodeSavedState(state);
  CHECK(again.ok()) << again.status() << ": " << state;
  CHECK(EncodeSavedState(*again) == state) << state;

  const uint64_t size = image->layout->size();
  if (size * (1 + image->slots.size()) > kMostValues || !NamesSlotsWell(*image)) return;
  const auto parameters = std::make_shared<Snapshot>();
  parameters->values = Ascending(size);
  image->parameters = parameters;
  for (SlotImage& slot : image->slots) slot.values = Ascending(size);
  CheckComesBack(*image);
}

}  // namespace sluice
