#include "server/rpc/access/tls.h"

#include <glog/logging.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/access/method_roles.h"

namespace sluice {
namespace {

absl::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

Roles RolesOf(const grpc_auth_context* context) {
  Roles roles;
  grpc_auth_property_iterator uris =
      grpc_auth_context_find_properties_by_name(context, GRPC_PEER_URI_PROPERTY_NAME);
  while (const grpc_auth_property* uri = grpc_auth_property_iterator_next(&uris)) {
    const auto role = RoleFromUri(absl::string_view(uri->value, uri->value_length));
    if (role.has_value()) roles = roles | *role;
  }
  return roles;
}

absl::string_view MethodIn(const grpc_metadata* metadata, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (View(metadata[i].key) == ":path") return View(metadata[i].value);
  }
  return "";
}

// gRPC asks this processor about each call, before the method sees the call.
void CheckCall(void* begun, grpc_auth_context* context, const grpc_metadata* metadata, size_t count,
               grpc_process_auth_metadata_done_cb done, void* call) {
  (*static_cast<const CallBegun*>(begun))();
  absl::Status allowed = CheckMetadata(metadata, count);
  if (allowed.ok()) allowed = CheckMay(RolesOf(context), MethodIn(metadata, count));
  const std::string why(allowed.message());
  done(call, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(allowed.code()), why.c_str());
}

class TlsServerCredentials final : public grpc::ServerCredentials {
 public:
  TlsServerCredentials(CredentialsSource source, CallBegun begun)
      : source_(std::move(source)),
        begun_(std::move(begun)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, Fetch, this))) {
    grpc_server_credentials_set_auth_metadata_processor(credentials_,
                                                        {CheckCall, nullptr, &begun_});
  }
  ~TlsServerCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    LOG(FATAL) << "the roles of callers are checked here already";
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC calls it before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsServerCredentials*>(self)->Renew(config);
  }

  grpc_ssl_certificate_config_reload_status Renew(grpc_ssl_server_certificate_config** config) {
    const absl::StatusOr<Credentials> now = source_();
    const absl::MutexLock lock(&mu_);
    if (!now.ok()) {
      // The log says it once for each reason, not at each connection.
      if (now.status() != problem_)
        LOG(ERROR) << "TLS continues with the previous credentials: " << now.status().message();
      problem_ = now.status();
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    }
    problem_ = absl::OkStatus();
    if (now->certificate == used_.certificate && now->authority == used_.authority) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    if (!used_.certificate.empty()) LOG(INFO) << "new TLS credentials are in use";
    used_ = {now->certificate, "", now->authority};
    const grpc_ssl_pem_key_cert_pair pair = {now->key.c_str(), now->certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(now->authority.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const CredentialsSource source_;
  CallBegun begun_;
  grpc_server_credentials* const credentials_;
  absl::Mutex mu_;
  Credentials used_ ABSL_GUARDED_BY(mu_);      // without the key, which belongs to the certificate
  absl::Status problem_ ABSL_GUARDED_BY(mu_);  // the last one in the log
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeTlsServerCredentials(CredentialsSource source,
                                                                  CallBegun begun) {
  return std::make_shared<TlsServerCredentials>(std::move(source), std::move(begun));
}

}  // namespace sluice
