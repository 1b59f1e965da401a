#include "server/rpc/access/tls.h"

#include <glog/logging.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace sluice {
namespace {

class TlsServerCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsServerCredentials(CredentialsSource source)
      : source_(std::move(source)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, Fetch, this))) {}
  ~TlsServerCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    LOG(FATAL) << "such a processor lets a peer end the server, see checked_service.h";
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
  grpc_server_credentials* const credentials_;
  absl::Mutex mu_;
  Credentials used_ ABSL_GUARDED_BY(mu_);      // without the key, which belongs to the certificate
  absl::Status problem_ ABSL_GUARDED_BY(mu_);  // the last one in the log
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeTlsServerCredentials(CredentialsSource source) {
  return std::make_shared<TlsServerCredentials>(std::move(source));
}

}  // namespace sluice
