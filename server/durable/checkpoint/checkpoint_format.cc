#include "server/durable/checkpoint/checkpoint_format.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/storage/safetensors.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/checkpoint/checked_file.h"
#include "server/durable/format/saved_state.h"

namespace sluice {
namespace {

constexpr char kStateKey[] = "sluice";

// The tensors in the file of a checkpoint.
std::vector<SafeTensor> TensorsOf(const ShardCheckpoint& checkpoint, bool striped) {
  if (striped) return CheckedTensors(Layout(), {});
  std::vector<std::string> slots;
  for (const SlotCheckpoint& slot : checkpoint.slots) slots.push_back(slot.name);
  return CheckedTensors(*checkpoint.layout, slots);
}

// A checkpoint without values, whose tensors match those of the file.
absl::StatusOr<ShardCheckpoint> ReadState(CheckedReader& reader) {
  const auto header = reader.ReadHeader();
  if (!header.ok()) return header.status();
  const auto state = header->metadata.find(kStateKey);
  if (state == header->metadata.end()) {
    return absl::DataLossError("it holds tensors, but no server's state");
  }
  auto checkpoint = DecodeSavedState(state->second);
  if (!checkpoint.ok()) return checkpoint.status();
  if (!SameTensors(header->tensors, TensorsOf(*checkpoint, !checkpoint->stripes.empty()))) {
    return absl::DataLossError("its tensors are not those of the layout in its state");
  }
  return checkpoint;
}

absl::Status WriteHeader(const ShardCheckpoint& checkpoint, const std::vector<uint64_t>& stripes,
                         absl::Span<const RowFile> row_files, CheckedWriter& writer,
                         uint64_t most_header) {
  SafeTensorsHeader header;
  header.metadata[kStateKey] = EncodeSavedState(checkpoint, stripes, row_files);
  header.metadata["format"] = "pt";  // other readers of safetensors look for this
  header.tensors = TensorsOf(checkpoint, !stripes.empty());
  return writer.WriteHeader(header, most_header);
}

absl::Status CheckIs(const ShardCheckpoint& state, const CheckpointSource& expected,
                     const Layout& layout) {
  const CheckpointSource found = SourceOf(state);
  const bool same = found.job_id == expected.job_id && found.step == expected.step &&
                    found.incarnation == expected.incarnation && found.slots == expected.slots &&
                    found.stripes.empty() && state.layout->ranges() == layout.ranges();
  if (same) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "it is of job ", found.job_id, ", incarnation ", found.incarnation.value(), ", step ",
      found.step.value(), ", and the first server expects job ", expected.job_id, ", incarnation ",
      expected.incarnation.value(), ", step ", expected.step.value(),
      ", with the same layout and optimizer, saved by one server"));
}

}  // namespace

absl::Status WriteCheckpoint(const ShardCheckpoint& checkpoint, WritableFile& file,
                             uint64_t most_header, absl::Span<const RowFile> row_files) {
  CheckedWriter writer(file);
  absl::Status written = WriteHeader(checkpoint, {}, row_files, writer, most_header);
  if (written.ok()) written = writer.Write(BytesOf(checkpoint.parameters->values.span()));
  for (const SlotCheckpoint& slot : checkpoint.slots) {
    if (written.ok()) written = writer.Write(BytesOf(slot.values.span()));
  }
  return written.ok() ? writer.WriteChecksum() : written;
}

absl::Status WriteStripedCheckpoint(const ShardCheckpoint& checkpoint,
                                    const std::vector<uint64_t>& stripes, WritableFile& file) {
  CheckedWriter writer(file);
  const absl::Status written = WriteHeader(checkpoint, stripes, {}, writer, kMostSafeTensorsHeader);
  return written.ok() ? writer.WriteChecksum() : written;
}

absl::StatusOr<ShardCheckpoint> ReadCheckpointState(const ReadableFile& file) {
  const ReadListener nobody;
  CheckedReader reader(file, nobody);
  auto state = ReadState(reader);
  if (!state.ok() || state->stripes.empty()) return state;
  const absl::Status checked = reader.CheckChecksum();
  if (!checked.ok()) return checked;
  return state;
}

absl::Status ReadCheckpointValues(const ReadableFile& file, const CheckpointSource& expected,
                                  const Layout& layout, const StripePieces& pieces,
                                  ShardCheckpoint* state) {
  const ReadListener nobody;
  CheckedReader reader(file, nobody);
  auto found = ReadState(reader);
  if (!found.ok()) return found.status();
  const absl::Status known = CheckIs(*found, expected, layout);
  if (!known.ok()) return known;
  if (state != nullptr) *state = *std::move(found);
  const absl::Status read = ReadPieces(reader, expected.slots.size() + 1, layout.size(), pieces);
  return read.ok() ? reader.CheckChecksum() : read;
}

absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file,
                                               const ReadListener& listener) {
  CheckedReader reader(file, listener);
  auto checkpoint = ReadState(reader);
  if (!checkpoint.ok()) return checkpoint.status();
  if (!checkpoint->stripes.empty()) {
    return absl::DataLossError(absl::StrCat("its values are in the files of ",
                                            checkpoint->stripes.size(), " servers' stripes"));
  }
  // The header's lengths were compared with the file's, so these sizes are safe.
  const uint64_t size = checkpoint->layout->size();
  const auto parameters = std::make_shared<Snapshot>();
  parameters->step = checkpoint->step;
  parameters->values = FloatBuffer(size);
  absl::Status read = ReadFloats(reader, parameters->values.span());
  checkpoint->parameters = parameters;
  for (SlotCheckpoint& slot : checkpoint->slots) {
    slot.values = FloatBuffer(size);
    if (read.ok()) read = ReadFloats(reader, slot.values.span());
  }
  if (read.ok()) read = reader.CheckChecksum();
  if (!read.ok()) return read;
  return checkpoint;
}

absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file, const std::string& path,
                                               const ProgressOutput& output) {
  ProgressLine progress(absl::StrCat("reading ", path), file.size(), output, RealClock());
  return ReadCheckpoint(file, [&](uint64_t bytes) { progress.Reach(bytes); });
}

}  // namespace sluice
