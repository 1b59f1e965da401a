#include "common/checkpoint/reading/checkpoint_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "common/checkpoint/reading/checkpoint_head.h"

namespace sluice {
namespace {

absl::Status CheckIs(const CheckpointContents& contents, const CheckpointSource& expected,
                     const Layout& layout) {
  const CheckpointSource& found = contents.source;
  const bool same = found.job_id == expected.job_id && found.step == expected.step &&
                    found.incarnation == expected.incarnation && found.slots == expected.slots &&
                    found.stripes.empty() && contents.layout->ranges() == layout.ranges();
  if (same) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "it is of job ", Shown(found.job_id), ", incarnation ", found.incarnation.value(), ", step ",
      found.step.value(), ", and the checkpoint expects job ", Shown(expected.job_id),
      ", incarnation ", expected.incarnation.value(), ", step ", expected.step.value(),
      ", with the same layout and optimizer, saved by one server"));
}

}  // namespace

absl::StatusOr<CheckpointContents> ReadContents(const ReadableFile& file) {
  auto head = ReadHead(file);
  if (!head.ok()) return head.status();
  return std::move(head->contents);
}

absl::Status ReadCheckpointValues(const ReadableFile& file, const CheckpointSource& expected,
                                  const Layout& layout, const StripePieces& pieces,
                                  CheckpointContents* contents) {
  const ReadListener nobody;
  CheckedReader reader(file, nobody);
  auto head = ReadHead(reader);
  if (!head.ok()) return head.status();
  const absl::Status known = CheckIs(head->contents, expected, layout);
  if (!known.ok()) return known;
  if (contents != nullptr) *contents = std::move(head->contents);
  const absl::Status read = ReadPieces(reader, expected.slots.size() + 1, layout.size(), pieces);
  return read.ok() ? reader.CheckChecksum() : read;
}

}  // namespace sluice
