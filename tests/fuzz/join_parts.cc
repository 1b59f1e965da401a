// A request to join in parts, from any peer: the parts make what they would make as one message, or
// are refused; and a whole request can be cut and put together again.
#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/tensor/layout.h"
#include "common/wire/join.h"
#include "common/wire/messages.h"
#include "sluice/v1/parameter_server.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

// The next part's bytes, after their number.
std::string TakePart(Input& input) {
  const size_t low = input.Byte();
  const size_t size = low + 256 * size_t{input.Byte()};
  return std::string(input.Take(size));
}

void CheckBounds(const JoinParts& parts) {
  CHECK(parts.bytes() <= kMaxJoinBytes);
  CHECK_GT(parts.parts(), 0u);
}

// The rule of protobuf: messages in a row are one message with the fields of all.
void CheckIsTheirSum(const std::string& bytes, const v1::JoinRequest& whole) {
  v1::JoinRequest sum;
  CHECK(sum.ParseFromString(bytes));
  sum.clear_more();
  sum.DiscardUnknownFields();
  CHECK(sum.SerializeAsString() == whole.SerializeAsString())
      << sum.ShortDebugString() << " but " << whole.ShortDebugString();
  CHECK(static_cast<size_t>(whole.layout().ranges_size()) <= Layout::kMaxRanges);
}

// The cuts lie elsewhere than those of the peer.
void CheckCanBeCut(const v1::JoinRequest& whole, size_t part_bytes) {
  const auto request = FromProto(whole);
  if (!request.ok()) return;
  JoinParts parts;
  for (v1::JoinRequest& part : SplitJoin(whole, part_bytes)) {
    CHECK(parts.parts() == 0 || !parts.complete());
    const size_t bytes = part.ByteSizeLong();
    const absl::Status added = parts.Add(std::move(part), bytes);
    CHECK(added.ok()) << added;
  }
  CHECK(parts.complete());
  const auto again = FromProto(parts.Take());
  CHECK(again.ok()) << again.status();
  CHECK(ToProto(*again).SerializeAsString() == ToProto(*request).SerializeAsString());
}

}  // namespace

void Try(absl::string_view bytes) {
  Input input(bytes);
  const size_t part_bytes = 16 * size_t{input.Byte()};
  const size_t unseen = size_t{input.Byte()} << 18;  // bytes that each part has in addition
  JoinParts parts;
  std::string sum;
  while (!input.empty() && !parts.complete()) {
    const std::string one = TakePart(input);
    v1::JoinRequest part;
    if (!part.ParseFromString(one)) return;
    sum += part.SerializeAsString();  // a field that is 0 is not a field, also if it was sent
    const absl::Status added = parts.Add(std::move(part), one.size() + unseen);
    if (!added.ok()) {
      return CheckRefusal(added, {Reason::kBadArgument, Reason::kBadLayout, Reason::kBadOptimizer});
    }
    CheckBounds(parts);
  }
  if (!parts.complete()) return CheckRefusal(parts.CheckComplete(), {Reason::kBadArgument});
  CHECK(parts.CheckComplete().ok());
  const v1::JoinRequest whole = parts.Take();
  CheckIsTheirSum(sum, whole);
  CheckCanBeCut(whole, part_bytes);
}

}  // namespace sluice
