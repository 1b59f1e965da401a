#include "common/checkpoint/reading/checkpoint_head.h"

#include <google/protobuf/util/json_util.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/wire/layout.h"

namespace sluice {
namespace {

absl::StatusOr<CheckpointContents> ContentsOf(const v1::SavedState& state) {
  auto layout = FromProto(state.layout());
  if (!layout.ok()) {
    return absl::DataLossError(absl::StrCat("its state is not valid: ", layout.status().message()));
  }
  CheckpointContents contents;
  contents.layout = std::make_shared<const Layout>(*std::move(layout));
  contents.source = {state.job_id(),
                     Incarnation(state.incarnation()),
                     Step(state.step()),
                     {state.stripes().begin(), state.stripes().end()},
                     {state.slots().begin(), state.slots().end()},
                     state.optimizer_steps()};
  for (const v1::SavedRowFile& file : state.row_files()) {
    contents.row_files.push_back({Step(file.step()), file.checksum()});
  }
  contents.row_steps = state.row_steps();
  contents.has_model = !state.optimizer().has_mean_gradient();
  return contents;
}

}  // namespace

absl::StatusOr<CheckpointHead> DecodeHead(absl::string_view json) {
  CheckpointHead head;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &head.state);
  if (!parsed.ok()) {
    return absl::DataLossError(
        absl::StrCat("its state is not a valid SavedState: ",
                     Shown({parsed.message().data(), parsed.message().size()})));
  }
  if (head.state.format() != kSavedStateFormat) {
    return absl::DataLossError(absl::StrCat("its state has format ", head.state.format(),
                                            ", this program knows ", kSavedStateFormat,
                                            "; was it saved by a newer one?"));
  }
  auto contents = ContentsOf(head.state);
  if (!contents.ok()) return contents.status();
  head.contents = *std::move(contents);
  return head;
}

std::vector<SafeTensor> TensorsOf(const CheckpointContents& contents) {
  if (!contents.source.stripes.empty()) return CheckedTensors(Layout(), {});
  return CheckedTensors(*contents.layout, contents.source.slots);
}

absl::StatusOr<CheckpointHead> ReadHead(CheckedReader& reader) {
  const auto header = reader.ReadHeader();
  if (!header.ok()) return header.status();
  const auto state = header->metadata.find(kSavedStateKey);
  if (state == header->metadata.end()) {
    return absl::DataLossError("it holds tensors, but no server's state");
  }
  auto head = DecodeHead(state->second);
  if (!head.ok()) return head;
  if (!SameTensors(header->tensors, TensorsOf(head->contents))) {
    return absl::DataLossError("its tensors are not those of the layout in its state");
  }
  return head;
}

absl::StatusOr<CheckpointHead> ReadHead(const ReadableFile& file) {
  const ReadListener nobody;
  CheckedReader reader(file, nobody);
  auto head = ReadHead(reader);
  if (!head.ok() || head->contents.source.stripes.empty()) return head;
  const absl::Status checked = reader.CheckChecksum();
  if (!checked.ok()) return checked;
  return head;
}

}  // namespace sluice
