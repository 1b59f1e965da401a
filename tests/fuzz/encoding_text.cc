// The text that says how a job's tensors are encoded: what is read of it is printed, and read
// again, as the same; so is its message.
#include <glog/logging.h>

#include <tuple>

#include "common/encoding/encoding.h"
#include "common/encoding/encoding_plan.h"
#include "common/encoding/transforms/builtin_transforms.h"
#include "common/wire/encoding.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/target.h"

namespace sluice {
namespace {

// Every field, which operator== does not look at.
auto FieldsOf(const Encoding& e) {
  return std::make_tuple(e.transform, e.stochastic, e.share, e.half, e.momentum, e.warmup, e.rank,
                         e.custom, e.byte_layout, e.compressor, e.level);
}

void CheckSame(const Encoding& a, const Encoding& b) {
  CHECK(FieldsOf(a) == FieldsOf(b)) << EncodingName(a) << " and " << EncodingName(b);
}

// What a worker asks a server for has no fields that are of the worker alone.
void CheckMessageOf(Encoding encoding) {
  encoding.momentum = false;
  encoding.warmup = 0;
  const auto received = FromProto(ToProto(encoding), BuiltinTransforms());
  if (encoding.transform == ValueTransform::kCustom) {
    return CheckRefusal(received.status(), {Reason::kBadArgument});
  }
  CHECK(received.ok()) << received.status();
  CheckSame(*received, encoding);
}

void CheckSame(const EncodingChoice& a, const EncodingChoice& b) {
  CheckSame(a.encoding, b.encoding);
  CHECK(a.candidates.size() == b.candidates.size());
  for (size_t i = 0; i < a.candidates.size(); ++i) CheckSame(a.candidates[i], b.candidates[i]);
  CHECK(a.overrides.size() == b.overrides.size());
  for (size_t i = 0; i < a.overrides.size(); ++i) {
    CHECK(a.overrides[i].pattern == b.overrides[i].pattern);
    CheckSame(a.overrides[i].encoding, b.overrides[i].encoding);
  }
}

}  // namespace

void Try(absl::string_view text) {
  const auto choice = ParseEncodingChoice(text);
  if (!choice.ok()) return CheckRefusal(choice.status(), {Reason::kBadArgument});
  CheckMessageOf(choice->encoding);
  const auto again = ParseEncodingChoice(EncodingChoiceName(*choice));
  CHECK(again.ok()) << again.status();
  CheckSame(*choice, *again);
}

}  // namespace sluice
