#include "server/durable/checkpoint/checkpoint_format.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/checkpoint/reading/checkpoint_head.h"
#include "common/storage/safetensors.h"
#include "common/tensor/tensor_chunk.h"
#include "server/durable/checkpoint/checked_writer.h"
#include "server/durable/format/saved_state.h"
#include "server/state/checkpoint_source.h"

namespace sluice {
namespace {

// What is read of the file's values.
CheckpointContents ContentsOf(const ShardCheckpoint& checkpoint,
                              const std::vector<uint64_t>& stripes) {
  CheckpointContents contents;
  contents.source = SourceOf(checkpoint);
  contents.source.stripes = stripes;
  contents.layout = checkpoint.layout;
  return contents;
}

// A checkpoint without values.
absl::StatusOr<ShardCheckpoint> StateOf(const absl::StatusOr<CheckpointHead>& head) {
  if (!head.ok()) return head.status();
  return DecodeSavedState(*head);
}

absl::Status WriteHeader(const ShardCheckpoint& checkpoint, const std::vector<uint64_t>& stripes,
                         absl::Span<const RowFile> row_files, CheckedWriter& writer,
                         uint64_t most_header) {
  SafeTensorsHeader header;
  header.metadata[kSavedStateKey] = EncodeSavedState(checkpoint, stripes, row_files);
  header.metadata["format"] = "pt";  // other readers of safetensors look for this
  header.tensors = TensorsOf(ContentsOf(checkpoint, stripes));
  return writer.WriteHeader(header, most_header);
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
  return StateOf(ReadHead(file));
}

absl::StatusOr<ShardCheckpoint> ReadCheckpoint(const ReadableFile& file,
                                               const ReadListener& listener) {
  CheckedReader reader(file, listener);
  auto checkpoint = StateOf(ReadHead(reader));
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
