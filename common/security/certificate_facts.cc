#include "common/security/certificate_facts.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <ctime>
#include <memory>

#include "absl/strings/string_view.h"

namespace sluice {
namespace {

// gRPC's protocol, as ALPN names it. Servers of gRPC may refuse others.
constexpr unsigned char kHttp2[] = {2, 'h', '2'};

struct FreeObject {
  void operator()(X509* object) const { X509_free(object); }
  void operator()(BIO* object) const { BIO_free(object); }
  void operator()(GENERAL_NAMES* object) const { GENERAL_NAMES_free(object); }
  void operator()(SSL_CTX* object) const { SSL_CTX_free(object); }
  void operator()(SSL* object) const { SSL_free(object); }
};
template <typename T>
using Own = std::unique_ptr<T, FreeObject>;

Own<X509> FirstIn(const std::string& pem) {
  const Own<BIO> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Own<X509> first(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return first;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? absl::FromTM(parts, absl::UTCTimeZone())
                                            : absl::InfinitePast();
}

absl::string_view TextIn(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// Empty unless it has 4 or 16 bytes.
std::string NumericText(absl::string_view bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.size() == 4) inet_ntop(AF_INET, bytes.data(), text, sizeof text);
  if (bytes.size() == 16) inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

void AddName(const GENERAL_NAME& name, CertificateFacts& facts) {
  if (name.type == GEN_DNS) facts.hosts.emplace_back(TextIn(name.d.dNSName));
  if (name.type == GEN_IPADD) facts.hosts.push_back(NumericText(TextIn(name.d.iPAddress)));
  if (name.type != GEN_URI) return;
  const auto role = RoleFromUri(TextIn(name.d.uniformResourceIdentifier));
  if (role.has_value()) facts.roles = facts.roles | *role;
}

Own<SSL_CTX> TrustingContext() {
  Own<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  if (context != nullptr) SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  return context;
}

std::string PemOf(X509* certificate) {
  const Own<BIO> out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(out.get(), certificate) != 1) return "";
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

}  // namespace

absl::StatusOr<CertificateFacts> FactsOf(const std::string& pem) {
  const Own<X509> certificate = FirstIn(pem);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError("it holds no PEM block CERTIFICATE");
  }
  CertificateFacts facts;
  facts.validity = {TimeOf(X509_get0_notBefore(certificate.get())),
                    TimeOf(X509_get0_notAfter(certificate.get()))};
  const uint32_t usage = X509_get_extended_key_usage(certificate.get());  // all bits if it has none
  facts.may_serve = (usage & XKU_SSL_SERVER) != 0;
  facts.may_call = (usage & XKU_SSL_CLIENT) != 0;
  const Own<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    AddName(*sk_GENERAL_NAME_value(names.get(), i), facts);
  }
  ERR_clear_error();
  return facts;
}

bool StandsFor(const std::string& pem, const std::string& host) {
  const Own<X509> certificate = FirstIn(pem);
  if (certificate == nullptr) return false;
  const bool stands =
      X509_check_host(certificate.get(), host.data(), host.size(), 0, nullptr) == 1 ||
      X509_check_ip_asc(certificate.get(), host.c_str(), 0) == 1;
  ERR_clear_error();
  return stands;
}

absl::StatusOr<std::string> CertificateShownAt(int socket) {
  const Own<SSL_CTX> context = TrustingContext();
  const Own<SSL> connection(context == nullptr ? nullptr : SSL_new(context.get()));
  if (connection == nullptr || SSL_set_fd(connection.get(), socket) != 1) {
    ERR_clear_error();
    return absl::InternalError("OpenSSL has no memory");
  }
  SSL_set_alpn_protos(connection.get(), kHttp2, sizeof kHttp2);
  // The server may refuse this side, which shows no certificate, after it has shown its own.
  SSL_connect(connection.get());
  const Own<X509> shown(SSL_get1_peer_certificate(connection.get()));
  ERR_clear_error();
  if (shown == nullptr) return absl::UnavailableError("the server speaks no TLS");
  return PemOf(shown.get());
}

}  // namespace sluice
