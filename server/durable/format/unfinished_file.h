// A file that is complete if it has its name: it is written under another name first, which ends
// with kUnfinished (Pillai et al. 2014, "All File Systems Are Not Created Equal").

#ifndef SLUICE_SERVER_DURABLE_FORMAT_UNFINISHED_FILE_H_
#define SLUICE_SERVER_DURABLE_FORMAT_UNFINISHED_FILE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/storage/file_system.h"

namespace sluice {

inline constexpr char kUnfinished[] = ".unfinished";

// Creates, writes, syncs and renames the file. The caller syncs the directory afterwards. After an
// error nothing is at `path`, or what was there before. Errors are those of `write` and
// FileSystem's.
absl::Status WriteThenName(FileSystem& files, const std::string& path,
                           absl::FunctionRef<absl::Status(WritableFile&)> write);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FORMAT_UNFINISHED_FILE_H_
