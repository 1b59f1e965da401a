// Files of one line of text, which is taken for what was written only if all of it is there.

#ifndef SLUICE_SERVER_DURABLE_FORMAT_CHECKED_LINE_H_
#define SLUICE_SERVER_DURABLE_FORMAT_CHECKED_LINE_H_

#include <string>

#include "absl/types/optional.h"
#include "common/storage/file_system.h"

namespace sluice {

// "TEXT CHECKSUM\n", for a text without spaces of at most 200 bytes.
std::string CheckedLine(const std::string& text);

// The text in a file that holds such a line; absent if there is no such file, or it is damaged.
absl::optional<std::string> ReadCheckedLine(FileSystem& files, const std::string& path);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FORMAT_CHECKED_LINE_H_
