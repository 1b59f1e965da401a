#include "common/wire/versions.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "common/base/error.h"
#include "sluice/v1/parameter_server.pb.h"

namespace sluice {
namespace {

std::string Described(uint32_t revision, absl::string_view version) {
  return absl::StrCat("revision ", revision, " of the protocol (Sluice ",
                      version.empty() ? "of an unknown version" : Shown(version), ")");
}

absl::Status Mismatch(const std::string& found, absl::string_view upgrade) {
  return MakeError(Reason::kVersionMismatch, absl::StrCat(found, "; upgrade the ", upgrade));
}

}  // namespace

std::vector<BuiltWith> WireVersions() {
  return {{"protocol", v1::JoinRequest::descriptor()->file()->package()},
          {"gRPC", grpc::Version()}};
}

absl::Status CheckWorkerRevision(const Revisions& served, uint32_t revision,
                                 absl::string_view version) {
  if (revision >= served.oldest && revision <= served.newest) return absl::OkStatus();
  const bool worker_is_newer = revision > served.newest;
  return Mismatch(absl::StrCat("the worker speaks ", Described(revision, version),
                               ", the server serves revisions ", served.oldest, " to ",
                               served.newest, " (Sluice ", kVersion, ")"),
                  worker_is_newer ? "server" : "worker");
}

absl::Status CheckServerRevision(const Revisions& own, uint32_t revision,
                                 absl::string_view version) {
  if (revision >= own.oldest) return absl::OkStatus();
  return Mismatch(
      absl::StrCat("the server speaks ", Described(revision, version), ", the worker needs ",
                   own.oldest, " or later (Sluice ", kVersion, ")"),
      "server");
}

std::string OtherVersion(absl::string_view worker, absl::string_view version) {
  if (version.empty() || version == kVersion) return "";
  return absl::StrCat(Shown(worker), " runs Sluice ", Shown(version), ", this server ", kVersion,
                      "; they understand each other, but upgrade the older one");
}

}  // namespace sluice
