// The translator of checkpoints: all of a shard's image but its tensors, as the JSON form of
// proto/sluice/v1/checkpoint.proto.

#ifndef SLUICE_SERVER_DURABLE_SAVED_STATE_H_
#define SLUICE_SERVER_DURABLE_SAVED_STATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/shard_image.h"

namespace sluice {

std::string EncodeSavedState(const ShardImage& image);

// Of text that anyone may have written: DATA_LOSS names what is wrong with it. The image's
// parameters are null, and its slots are empty.
absl::StatusOr<ShardImage> DecodeSavedState(absl::string_view json);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_SAVED_STATE_H_
