#include "server/rpc/access/call_check.h"

#include <glog/logging.h>
#include <grpc/grpc.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/access/rpc_limits.h"

namespace sluice {
namespace {

class PlaintextServerCredentials final : public grpc::ServerCredentials {
 public:
  explicit PlaintextServerCredentials(CallBegun begun)
      : begun_(std::move(begun)), credentials_(grpc_insecure_server_credentials_create()) {
    grpc_server_credentials_set_auth_metadata_processor(credentials_, {Check, nullptr, this});
  }
  ~PlaintextServerCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    LOG(FATAL) << "calls are checked here already";
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static void Check(void* self, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                    grpc_process_auth_metadata_done_cb done, void* call) {
    static_cast<PlaintextServerCredentials*>(self)->begun_();
    const absl::Status allowed = CheckMetadata(metadata, count);
    const std::string why(allowed.message());
    done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(allowed.code()), why.c_str());
  }

  const CallBegun begun_;
  grpc_server_credentials* const credentials_;
};

}  // namespace

absl::Status CheckMetadata(const grpc_metadata* metadata, size_t count) {
  constexpr size_t kOfEach = 32;  // so counts HTTP/2
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    bytes += GRPC_SLICE_LENGTH(metadata[i].key) + GRPC_SLICE_LENGTH(metadata[i].value) + kOfEach;
  }
  if (bytes <= RpcLimits::kMetadataBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the call's metadata have ", bytes, " bytes, expected at most ", RpcLimits::kMetadataBytes));
}

std::shared_ptr<grpc::ServerCredentials> MakePlaintextServerCredentials(CallBegun begun) {
  return std::make_shared<PlaintextServerCredentials>(std::move(begun));
}

}  // namespace sluice
