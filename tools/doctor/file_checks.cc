#include "tools/doctor/file_checks.h"

#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/net/address.h"
#include "common/net/listening_sockets.h"
#include "common/security/secret_file.h"
#include "common/storage/file_system.h"
#include "server/program/security_flags.h"

namespace sluice {
namespace {

absl::Status TryCredentials(const TlsFiles& files) {
  SecurityFlags flags;
  flags.tls = files;
  const auto source = CredentialsFrom(flags);
  return source.ok() ? (*source)().status() : source.status();
}

// Writes a file as a server does, syncs it, and removes it.
absl::Status TryDirectory(const std::string& directory) {
  FileSystem& files = RealFileSystem();
  const std::string path = absl::StrCat(directory, "/.sluice-doctor-", getpid());
  auto file = files.Create(path);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Append(std::string(4096, 'x'));
  status.Update((*file)->Sync());
  status.Update(files.Remove(path));
  status.Update(files.SyncDirectory(directory));
  return status;
}

// The server makes the directory, and those above it, if they are not there.
Finding CheckDirectory(const std::string& wanted) {
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(wanted, error);
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    there = there.parent_path();
  }
  const std::string directory = there.string();
  const auto space = std::filesystem::space(directory, error);
  const std::string free =
      error ? "unknown" : absl::StrFormat("%.0f MB", static_cast<double>(space.available) / 1e6);
  return FindingOf("checkpoints", TryDirectory(directory),
                   absl::StrCat(directory, " can be written and synced, ", free, " are free"),
                   Verdict::kWrong, "make a directory that this user may write, with free space");
}

absl::Status TryToListen(const std::string& text) {
  const auto address = ParseAddress(text);
  if (!address.ok()) return address.status();
  const absl::Status opened = ListeningSockets::Open(*address, absl::Seconds(1)).status();
  if (opened.ok()) return opened;
  return absl::UnavailableError(absl::StrCat(text, ": ", opened.message()));
}

}  // namespace

Findings CheckNamed(const NamedThings& things) {
  Findings findings;
  const TlsFiles& tls = things.tls;
  if (!tls.certificate.empty() || !tls.key.empty() || !tls.authority.empty()) {
    findings.push_back(FindingOf("certificate", TryCredentials(tls),
                                 "valid now, and the key belongs to it", Verdict::kWrong,
                                 "server/rpc/access/README.md says how to make one"));
  }
  if (!things.token_file.empty()) {
    findings.push_back(FindingOf("token", ReadSecretFile(things.token_file).status(),
                                 "only this user can read it", Verdict::kWrong,
                                 "workers and server need the same secret"));
  }
  if (!things.checkpoint_dir.empty()) findings.push_back(CheckDirectory(things.checkpoint_dir));
  if (!things.listen.empty()) {
    findings.push_back(FindingOf("listen", TryToListen(things.listen), things.listen + " is free",
                                 Verdict::kWrong,
                                 "end the process that has it, or choose another port"));
  }
  return findings;
}

}  // namespace sluice
