#include "common/wire/join.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/tensor/layout.h"
#include "google/protobuf/message.h"

namespace sluice {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A field's tag and length have at most so many bytes, in each of the two messages around it.
constexpr size_t kAround = 16;

// Fills one part after the other.
class Cutter {
 public:
  Cutter(v1::JoinRequest first, size_t part_bytes)
      : part_bytes_(part_bytes), used_(first.ByteSizeLong()) {
    parts_.push_back(std::move(first));
  }

  void Add(v1::LayoutRange range) {
    v1::JoinRequest& part = PartWithRoom(range.ByteSizeLong());
    *part.mutable_layout()->add_ranges() = std::move(range);
  }

  void Add(v1::ConstantTensor constant) {
    v1::JoinRequest& part = PartWithRoom(constant.ByteSizeLong());
    *part.mutable_layout()->add_constants() = std::move(constant);
  }

  void Add(v1::OptimizerGroup group) {
    google::protobuf::RepeatedPtrField<std::string> names;
    names.Swap(group.mutable_parameters());
    v1::OptimizerGroup* to = AddGroup(group.ByteSizeLong());
    *to = std::move(group);
    for (std::string& name : names) {
      if (!HasRoom(name.size())) {
        to = AddGroup(name.size());
        to->set_continues(true);
      }
      used_ += name.size() + kAround;
      *to->add_parameters() = std::move(name);
    }
  }

  std::vector<v1::JoinRequest> Take() {
    for (size_t i = 0; i + 1 < parts_.size(); ++i) parts_[i].set_more(true);
    return std::move(parts_);
  }

 private:
  bool HasRoom(size_t bytes) const { return used_ + bytes + kAround <= part_bytes_; }

  v1::OptimizerGroup* AddGroup(size_t bytes) {
    return PartWithRoom(bytes).mutable_optimizer()->add_groups();
  }

  v1::JoinRequest& PartWithRoom(size_t bytes) {
    if (!HasRoom(bytes) && used_ > 0) {
      parts_.emplace_back();
      used_ = 0;
    }
    used_ += bytes + kAround;
    return parts_.back();
  }

  const size_t part_bytes_;
  size_t used_;
  std::vector<v1::JoinRequest> parts_;
};

// The name of a field of `message` that is set and is none of `expected`; empty: there is none.
std::string OtherField(const Message& message, const std::set<std::string>& expected) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (expected.count(field->name()) == 0) return field->name();
  }
  return "";
}

size_t Sum(int a, int b) { return static_cast<size_t>(a) + static_cast<size_t>(b); }

// A shape may take more memory than the bytes that it came in.
template <typename Tensors>
absl::Status CheckDimensions(const Tensors& tensors, absl::string_view kind) {
  for (const auto& tensor : tensors) {
    if (static_cast<size_t>(tensor.shape_size()) <= Layout::kMaxDimensions) continue;
    return MakeError(Reason::kBadLayout,
                     absl::StrCat("a ", kind, " of the layout has ", tensor.shape_size(),
                                  " dimensions, expected at most ", Layout::kMaxDimensions));
  }
  return absl::OkStatus();
}

absl::Status BadPart(size_t part, absl::string_view problem) {
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("part ", part, " of the request to join ", problem));
}

}  // namespace

std::vector<v1::JoinRequest> SplitJoin(v1::JoinRequest request, size_t part_bytes) {
  google::protobuf::RepeatedPtrField<v1::LayoutRange> ranges;
  google::protobuf::RepeatedPtrField<v1::ConstantTensor> constants;
  google::protobuf::RepeatedPtrField<v1::OptimizerGroup> groups;
  if (request.has_layout()) {
    ranges.Swap(request.mutable_layout()->mutable_ranges());
    constants.Swap(request.mutable_layout()->mutable_constants());
  }
  if (request.has_optimizer()) groups.Swap(request.mutable_optimizer()->mutable_groups());
  Cutter cutter(std::move(request), part_bytes);
  for (v1::LayoutRange& range : ranges) cutter.Add(std::move(range));
  for (v1::ConstantTensor& constant : constants) cutter.Add(std::move(constant));
  for (v1::OptimizerGroup& group : groups) cutter.Add(std::move(group));
  return cutter.Take();
}

absl::Status JoinParts::Add(v1::JoinRequest part, size_t bytes) {
  ++parts_;
  absl::Status sound = CheckFollows(part);
  if (sound.ok()) sound = CheckSizes(part, bytes);
  if (!sound.ok()) return sound;
  more_ = part.more();
  part.clear_more();
  part.DiscardUnknownFields();
  whole_.MergeFrom(part);
  return absl::OkStatus();
}

absl::Status JoinParts::CheckFollows(const v1::JoinRequest& part) const {
  if (parts_ == 1) return absl::OkStatus();
  constexpr char kExpected[] =
      ", expected layout.ranges, layout.constants and optimizer.groups only: the other fields are "
      "in "
      "the first part";
  std::string other = OtherField(part, {"layout", "optimizer", "more"});
  if (other.empty()) {
    other = OtherField(part.optimizer(), {"groups"});
    if (!other.empty()) other = "optimizer." + other;
  }
  if (other.empty()) {
    other = OtherField(part.layout(), {"ranges", "constants"});
    if (!other.empty()) other = "layout." + other;
  }
  if (!other.empty()) return BadPart(parts_, absl::StrCat("has the field ", other, kExpected));
  if (part.layout().ranges_size() == 0 && part.layout().constants_size() == 0 &&
      part.optimizer().groups_size() == 0) {
    return BadPart(parts_, "is empty, expected ranges, constants or groups; leave it out");
  }
  return absl::OkStatus();
}

absl::Status JoinParts::CheckSizes(const v1::JoinRequest& part, size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > kMaxJoinBytes) {
    return BadPart(parts_, absl::StrCat("makes it ", bytes_, " bytes long, expected at most ",
                                        kMaxJoinBytes, "; give the tensors shorter names"));
  }
  const absl::Status ranges = CheckRanges(part.layout());
  return ranges.ok() ? CheckGroups(part.optimizer()) : ranges;
}

absl::Status JoinParts::CheckRanges(const v1::Layout& added) const {
  const size_t ranges = Sum(added.ranges_size(), whole_.layout().ranges_size());
  if (ranges > Layout::kMaxRanges) {
    return MakeError(Reason::kBadLayout,
                     absl::StrCat("the layout has ", ranges, " ranges or more, expected at most ",
                                  Layout::kMaxRanges));
  }
  const size_t constants = Sum(added.constants_size(), whole_.layout().constants_size());
  if (constants > Layout::kMaxConstants) {
    return MakeError(Reason::kBadLayout,
                     absl::StrCat("the layout has ", constants, " constants or more, expected at ",
                                  "most ", Layout::kMaxConstants));
  }
  const absl::Status ranges_are_sound = CheckDimensions(added.ranges(), "range");
  return ranges_are_sound.ok() ? CheckDimensions(added.constants(), "constant") : ranges_are_sound;
}

absl::Status JoinParts::CheckGroups(const v1::OptimizerConfig& added) {
  for (const v1::OptimizerGroup& group : added.groups()) {
    grouped_ += static_cast<size_t>(group.parameters_size());
    if (group.options().groups_size() == 0) continue;
    return MakeError(Reason::kBadOptimizer,
                     "a group of the optimizer has groups of its own, expected none");
  }
  const size_t groups = Sum(added.groups_size(), whole_.optimizer().groups_size());
  if (std::max(groups, grouped_) <= Layout::kMaxRanges) return absl::OkStatus();
  return MakeError(Reason::kBadOptimizer,
                   absl::StrCat("the optimizer has ", groups, " groups of ", grouped_,
                                " parameters or more, expected at most ", Layout::kMaxRanges));
}

absl::Status JoinParts::CheckComplete() const {
  if (complete()) return absl::OkStatus();
  return MakeError(Reason::kBadArgument,
                   absl::StrCat("the request to join ends after ", parts_, " parts, expected ",
                                parts_ == 0 ? "at least one" : "another, as field more says"));
}

}  // namespace sluice
