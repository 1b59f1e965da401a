#include "tools/bench/rounds/cell_credentials.h"

#include <sys/stat.h>

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/launch/launch_credentials.h"

namespace sluice::bench {
namespace {

constexpr char kAnd = '@';  // between an address and a directory

TlsFiles FilesIn(const std::string& directory) {
  return {directory + "/worker.pem", directory + "/worker.key", directory + "/authority.pem"};
}

absl::Status Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file ? absl::OkStatus() : absl::UnavailableError("cannot write " + path);
}

}  // namespace

absl::StatusOr<CellCredentials> MakeCellCredentials() {
  auto made = MakeLaunchCredentials({}, absl::Now());
  if (!made.ok()) return made.status();
  auto directory = PrivateDirectory::Create();
  if (!directory.ok()) return directory.status();
  umask(S_IRWXG | S_IRWXO);
  const TlsFiles files = FilesIn((*directory)->path());
  absl::Status written = Write(files.certificate, made->worker.certificate);
  written.Update(Write(files.key, made->worker.key));
  written.Update(Write(files.authority, made->worker.authority));
  if (!written.ok()) return written;
  return CellCredentials{SourceOf(std::move(made->server)), *std::move(directory)};
}

std::string JoinAddress(const CellAddress& cell) {
  if (cell.directory.empty()) return cell.address;
  return absl::StrCat(cell.address, std::string(1, kAnd), cell.directory);
}

CellAddress SplitAddress(const std::string& text) {
  const size_t at = text.find(kAnd);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

CredentialsSource WorkerCredentials(const std::string& directory) {
  return directory.empty() ? CredentialsSource() : SourceOf(FilesIn(directory));
}

}  // namespace sluice::bench
