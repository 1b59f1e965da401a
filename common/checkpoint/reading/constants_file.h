// Reads the file in which the first server of a job saves the values of its constants: once, beside
// the checkpoints, which all belong to it. It is a safetensors file with the constants under their
// names, in the order of the layout; then "sluice:checksum", the XXH3-64 of all bytes before it.
// The metadata's key "sluice:constants" has the job's id.

#ifndef SLUICE_COMMON_CHECKPOINT_READING_CONSTANTS_FILE_H_
#define SLUICE_COMMON_CHECKPOINT_READING_CONSTANTS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/storage/file_system.h"
#include "common/storage/safetensors.h"
#include "common/tensor/constant_tensor.h"

namespace sluice {

inline constexpr char kConstantsFile[] = "constants.safetensors";

// Returns the header of that file, for these constants of that job.
SafeTensorsHeader ConstantsHeader(const std::string& job_id,
                                  const std::vector<ConstantTensor>& constants);

// The values of the job's constants, one tensor after the other; nothing if there are none, and no
// file is read then. DATA_LOSS names the file, and says that it is missing, damaged, or of another
// job or model. Other errors are FileSystem's.
absl::StatusOr<std::string> ReadConstants(FileSystem& files, const std::string& directory,
                                          const std::string& job_id,
                                          const std::vector<ConstantTensor>& constants);

}  // namespace sluice

#endif  // SLUICE_COMMON_CHECKPOINT_READING_CONSTANTS_FILE_H_
