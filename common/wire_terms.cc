#include "common/wire_terms.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace sluice {
namespace {

absl::Status BadRange(const v1::LayoutRange& range, absl::string_view field, int found,
                      absl::string_view expected) {
  // Escaped, so that a character cut in two is no broken UTF-8, which protobuf would not carry.
  const std::string name = absl::CEscape(range.name().substr(0, 64));
  return MakeError(Reason::kBadLayout, absl::StrCat("range \"", name, "\" has ", field, " ", found,
                                                    ", expected ", expected));
}

absl::StatusOr<RangeKind> KindFromProto(const v1::LayoutRange& range) {
  switch (range.kind()) {
    case v1::PARAMETER:
      return RangeKind::kParameter;
    case v1::STATISTIC:
      return RangeKind::kStatistic;
    default:
      return BadRange(range, "kind", range.kind(), "PARAMETER or STATISTIC");
  }
}

absl::StatusOr<DataType> DataTypeFromProto(const v1::LayoutRange& range) {
  switch (range.dtype()) {
    case v1::FLOAT32:
      return DataType::kFloat32;
    case v1::FLOAT64:
      return DataType::kFloat64;
    case v1::FLOAT16:
      return DataType::kFloat16;
    case v1::BFLOAT16:
      return DataType::kBFloat16;
    default:
      return BadRange(range, "dtype", range.dtype(), "FLOAT32, FLOAT64, FLOAT16 or BFLOAT16");
  }
}

v1::DataType DataTypeToProto(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat64:
      return v1::FLOAT64;
    case DataType::kFloat16:
      return v1::FLOAT16;
    case DataType::kBFloat16:
      return v1::BFLOAT16;
    case DataType::kFloat32:
      break;
  }
  return v1::FLOAT32;
}

}  // namespace

absl::StatusOr<Layout> FromProto(const v1::Layout& message) {
  // Before anything is allocated for them.
  const size_t count = message.ranges_size();
  if (count > Layout::kMaxRanges) {
    return MakeError(
        Reason::kBadLayout,
        absl::StrCat("the layout has ", count, " ranges, expected 1 to ", Layout::kMaxRanges));
  }
  std::vector<LayoutRange> ranges;
  ranges.reserve(count);
  for (const v1::LayoutRange& from : message.ranges()) {
    const auto kind = KindFromProto(from);
    if (!kind.ok()) return kind.status();
    const auto dtype = DataTypeFromProto(from);
    if (!dtype.ok()) return dtype.status();
    LayoutRange range;
    range.name = from.name();
    range.shape.assign(from.shape().begin(), from.shape().end());
    range.kind = *kind;
    range.dtype = *dtype;
    range.offset = from.offset();
    range.length = from.length();
    ranges.push_back(std::move(range));
  }
  return Layout::Create(std::move(ranges));
}

absl::StatusOr<SgdOptions> FromProto(const v1::OptimizerConfig& message) {
  if (!message.has_sgd()) {
    return MakeError(Reason::kBadOptimizer, "no optimizer that this server knows; it knows sgd");
  }
  SgdOptions options;
  options.learning_rate = message.sgd().learning_rate();
  options.momentum = message.sgd().momentum();
  options.dampening = message.sgd().dampening();
  options.weight_decay = message.sgd().weight_decay();
  options.nesterov = message.sgd().nesterov();
  const absl::Status status = options.Validate();
  if (!status.ok()) return status;
  return options;
}

absl::StatusOr<Consistency> FromProto(const v1::Consistency& message) {
  Consistency consistency;
  if (message.mode() != v1::SYNC && message.mode() != v1::ASYNC) {
    return MakeError(
        Reason::kBadArgument,
        absl::StrCat("field consistency.mode is ", static_cast<int>(message.mode()),
                     ", expected SYNC or ASYNC; is the server newer than this worker?"));
  }
  consistency.mode = message.mode() == v1::SYNC ? ConsistencyMode::kSync : ConsistencyMode::kAsync;
  consistency.quorum = message.quorum();
  if (message.has_max_staleness()) consistency.max_staleness = message.max_staleness();
  const absl::Status status = consistency.Validate();
  if (!status.ok()) return status;
  return consistency;
}

v1::LayoutRange ToProto(const LayoutRange& range) {
  v1::LayoutRange message;
  message.set_name(range.name);
  for (const uint32_t dimension : range.shape) message.add_shape(dimension);
  message.set_kind(range.kind == RangeKind::kParameter ? v1::PARAMETER : v1::STATISTIC);
  message.set_dtype(DataTypeToProto(range.dtype));
  message.set_offset(range.offset);
  message.set_length(range.length);
  return message;
}

v1::Consistency ToProto(const Consistency& consistency) {
  v1::Consistency message;
  message.set_mode(consistency.mode == ConsistencyMode::kSync ? v1::SYNC : v1::ASYNC);
  message.set_quorum(consistency.quorum);
  if (consistency.max_staleness.has_value()) message.set_max_staleness(*consistency.max_staleness);
  return message;
}

v1::OptimizerConfig ToProto(const SgdOptions& options) {
  v1::OptimizerConfig message;
  v1::SgdOptions* sgd = message.mutable_sgd();
  sgd->set_learning_rate(options.learning_rate);
  sgd->set_momentum(options.momentum);
  sgd->set_dampening(options.dampening);
  sgd->set_weight_decay(options.weight_decay);
  sgd->set_nesterov(options.nesterov);
  return message;
}

}  // namespace sluice
