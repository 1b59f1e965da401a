// What the header of a checkpoint's file says (SavedState in proto/sluice/v1/durable.proto). Its
// values are read with checkpoint_file.h.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_HEAD_H_
#define SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_HEAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint_contents.h"
#include "common/checkpoint/reading/checked_reader.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"
#include "sluice/v1/durable.pb.h"

namespace sluice {

// The number of the state's format.
inline constexpr uint32_t kSavedStateFormat = 1;
// The key of the state in the metadata.
inline constexpr char kSavedStateKey[] = "sluice";

// `contents` are what readers of values need of the state. A server needs the rest, too.
struct CheckpointHead {
  v1::SavedState state;
  CheckpointContents contents;
};

// Reads the state's JSON, which may come from anywhere: DATA_LOSS says what is wrong with it.
absl::StatusOr<CheckpointHead> DecodeHead(absl::string_view json);

// The tensors in the file of a checkpoint: if several servers have saved it, the checksum alone.
std::vector<SafeTensor> TensorsOf(const CheckpointContents& contents);

// Reads the header, whose tensors are then those of the contents. The values follow. DATA_LOSS says
// what is wrong with it.
absl::StatusOr<CheckpointHead> ReadHead(CheckedReader& reader);

// The same from the beginning of a file. If one server has saved the checkpoint, the values are not
// read and the checksum is not checked.
absl::StatusOr<CheckpointHead> ReadHead(const ReadableFile& file);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_CHECKPOINT_HEAD_H_
