// What the servers of a job send each other, whole and in parts: refused, or taken, said, and taken
// again as the same.
#include <glog/logging.h>

#include <utility>

#include "server/rpc/servers/command_messages.h"
#include "server/rpc/servers/message_parts.h"
#include "server/rpc/servers/report_messages.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

template <typename Message>
void Take(const Message& message) {
  const auto value = FromProto(message);
  if (!value.ok()) {
    CheckRefusal(value.status(), {Reason::kBadArgument, Reason::kBadLayout, Reason::kBadOptimizer});
    return;
  }
  const Message said = ToProto(*value);
  const auto again = FromProto(said);
  CHECK(again.ok()) << again.status() << ": " << said.ShortDebugString();
  CHECK(ToProto(*again).SerializeAsString() == said.SerializeAsString()) << said.ShortDebugString();
}

void TakeFigures(const v1::HolderFigures& message) {
  const v1::HolderFigures said = ToProto(FromProto(message));
  CHECK(ToProto(FromProto(said)).SerializeAsString() == said.SerializeAsString());
}

// Messages of a stream, each after its size of two bytes.
template <typename Message>
void TakeStream(Input& input) {
  MessageParts<Message> parts;
  while (!input.empty()) {
    const size_t size = input.Byte() + size_t{256} * input.Byte();
    const absl::string_view bytes = input.Take(size);
    Message message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    const uint64_t number = message.number();
    const auto whole = parts.Add(std::move(message));
    if (!whole.ok()) return CheckRefusal(whole.status(), {Reason::kBadArgument});
    if (!whole->has_value()) continue;
    CHECK(!(*whole)->has_part() && (*whole)->number() == number);
    Take(**whole);
  }
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const uint8_t which = input.Byte();
  if (which % 3 == 0) return TakeStream<v1::SequencerMessage>(input);
  if (which % 3 == 1) return TakeStream<v1::HolderMessage>(input);
  v1::HolderFigures figures;
  const absl::string_view rest = input.Rest();
  if (figures.ParseFromArray(rest.data(), static_cast<int>(rest.size()))) TakeFigures(figures);
}

}  // namespace sluice
