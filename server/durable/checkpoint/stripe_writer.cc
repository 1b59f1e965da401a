#include "server/durable/checkpoint/stripe_writer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/reading/checked_reader.h"
#include "common/checkpoint/reading/stripe_file.h"
#include "common/storage/safetensors.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/checkpoint/checked_writer.h"

namespace sluice {
namespace {

std::string RowFilesText(absl::Span<const RowFile> files) {
  return absl::StrJoin(files, " ", [](std::string* text, const RowFile& file) {
    absl::StrAppend(text, file.step.value(), ":", file.checksum);
  });
}

}  // namespace

absl::StatusOr<uint64_t> WriteStripe(const StripeName& name, const Layout& layout,
                                     const StripeCheckpoint& stripe, WritableFile& file,
                                     absl::Span<const RowFile> row_files) {
  std::vector<std::string> slots;
  for (const SlotCheckpoint& slot : stripe.slots) slots.push_back(slot.name);
  SafeTensorsHeader header;
  header.metadata = StripeMetadata(name, stripe.optimizer_steps);
  if (!row_files.empty()) {
    header.metadata[kStripeRowsKey] = RowFilesText(row_files);
    header.metadata[kStripeRowStepsKey] = absl::StrCat(stripe.row_steps);
  }
  header.tensors = CheckedTensors(StripeLayout(name, layout), slots);
  CheckedWriter writer(file);
  absl::Status written = writer.WriteHeader(header, kMostSafeTensorsHeader);
  if (written.ok()) written = writer.Write(BytesOf(stripe.parameters->values.span()));
  for (const SlotCheckpoint& slot : stripe.slots) {
    if (written.ok()) written = writer.Write(BytesOf(slot.values.span()));
  }
  if (written.ok()) written = writer.WriteChecksum();
  if (!written.ok()) return written;
  return writer.sum();
}

}  // namespace sluice
