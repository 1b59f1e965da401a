// A line of text with a checksum, so that a reader notices if the file is incomplete.

#ifndef SLUICE_SERVER_DURABLE_FORMAT_CHECKED_LINE_H_
#define SLUICE_SERVER_DURABLE_FORMAT_CHECKED_LINE_H_

#include <string>

#include "absl/types/optional.h"
#include "common/storage/file_system.h"

namespace sluice {

// Returns "TEXT CHECKSUM\n". The text has at most 200 bytes and no spaces.
std::string CheckedLine(const std::string& text);

// The text of a file with such a line; absent if there is no such file, or if it is damaged.
absl::optional<std::string> ReadCheckedLine(FileSystem& files, const std::string& path);

}  // namespace sluice

#endif  // SLUICE_SERVER_DURABLE_FORMAT_CHECKED_LINE_H_
