#include "server/durable/format/unfinished_file.h"

#include <memory>

#include "absl/status/statusor.h"

namespace sluice {
namespace {

absl::Status WriteAndSync(FileSystem& files, const std::string& path,
                          absl::FunctionRef<absl::Status(WritableFile&)> write) {
  auto file = files.Create(path);
  if (!file.ok()) return file.status();
  const absl::Status written = write(**file);
  return written.ok() ? (*file)->Sync() : written;
}

}  // namespace

absl::Status WriteThenName(FileSystem& files, const std::string& path,
                           absl::FunctionRef<absl::Status(WritableFile&)> write) {
  const std::string unfinished = path + kUnfinished;
  absl::Status written = WriteAndSync(files, unfinished, write);
  if (written.ok()) written = files.Rename(unfinished, path);
  if (!written.ok()) files.Remove(unfinished).IgnoreError();  // nobody takes it for the file
  return written;
}

}  // namespace sluice
