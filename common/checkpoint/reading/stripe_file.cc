#include "common/checkpoint/reading/stripe_file.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/error.h"
#include "common/storage/safetensors.h"
#include "common/tensor/stripes.h"

namespace sluice {
namespace {

using Metadata = std::map<std::string, std::string>;

// The header's checksum is that of the whole file, so it is checked later.
absl::StatusOr<StripeRows> ReadRowFiles(const Metadata& metadata) {
  StripeRows rows;
  const auto files = metadata.find(kStripeRowsKey);
  const auto steps = metadata.find(kStripeRowStepsKey);
  if (files == metadata.end() || steps == metadata.end()) return rows;
  bool sound = absl::SimpleAtoi(steps->second, &rows.steps);
  for (const absl::string_view word : absl::StrSplit(files->second, ' ')) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(word, ':');
    uint64_t step = 0;
    RowFile file;
    sound = sound && absl::SimpleAtoi(parts.first, &step) &&
            absl::SimpleAtoi(parts.second, &file.checksum);
    file.step = Step(step);
    rows.files.push_back(file);
  }
  if (sound) return rows;
  return absl::DataLossError(absl::StrCat("its header names the files of rows \"",
                                          Shown(files->second),
                                          "\", expected words STEP:CHECKSUM"));
}

absl::Status CheckMetadata(const Metadata& found, const Metadata& expected) {
  for (const auto& [key, value] : expected) {
    const auto entry = found.find(key);
    if (entry == found.end()) {
      return absl::DataLossError(
          absl::StrCat("it is no stripe of a checkpoint: its header has no \"", key, "\""));
    }
    if (entry->second != value) {
      return absl::DataLossError(absl::StrCat("its header says that \"", key, "\" is \"",
                                              Shown(entry->second),
                                              "\", and the checkpoint expects \"", value, "\""));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFileSum(uint64_t found, uint64_t expected) {
  if (found == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("its checksum is ", found,
                                          ", and the leader's file of the checkpoint names ",
                                          expected, ": it is another file than the one saved"));
}

}  // namespace

Metadata StripeMetadata(const StripeName& name, uint64_t optimizer_steps) {
  return {{"format", "pt"},  // other readers of safetensors look for this
          {"sluice:incarnation", absl::StrCat(name.incarnation.value())},
          {kStripeJobKey, name.job_id},
          {"sluice:optimizer_steps", absl::StrCat(optimizer_steps)},
          {"sluice:step", absl::StrCat(name.step.value())},
          {kStripeKey, absl::StrCat(name.stripe)},
          {"sluice:stripes", absl::StrCat(name.stripes)}};
}

Layout StripeLayout(const StripeName& name, const Layout& layout) {
  return layout.OfStripe(Stripes(layout.size(), name.stripes), name.stripe);
}

absl::Status ReadStripe(const ReadableFile& file, const ExpectedStripe& expected,
                        const StripePieces& pieces, StripeRows* rows) {
  const ReadListener nobody;
  CheckedReader reader(file, nobody);
  const auto header = reader.ReadHeader();
  if (!header.ok()) return header.status();
  const absl::Status known =
      CheckMetadata(header->metadata, StripeMetadata(expected.name, expected.optimizer_steps));
  if (!known.ok()) return known;
  auto found = ReadRowFiles(header->metadata);
  if (!found.ok()) return found.status();
  if (rows != nullptr) *rows = *std::move(found);
  const Layout layout = StripeLayout(expected.name, expected.layout);
  if (!SameTensors(header->tensors, CheckedTensors(layout, expected.slots))) {
    return absl::DataLossError(
        "its tensors are not the parts that this stripe has of the checkpoint's layout");
  }
  const absl::Status read = ReadPieces(reader, expected.slots.size() + 1, layout.size(), pieces);
  if (!read.ok()) return read;
  const absl::Status checked = reader.CheckChecksum();
  return checked.ok() ? CheckFileSum(reader.sum(), expected.checksum) : checked;
}

}  // namespace sluice
