#include "common/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

constexpr long kVersion3 = 2;  // X.509 counts versions from 0
constexpr int kSerialBytes = 16;
constexpr char kAuthorityName[] = "Sluice launch";

// Called before any other function of OpenSSL. Otherwise OpenSSL frees its memory when main
// returns, while gRPC's threads may still use it.
[[maybe_unused]] const int kNoCleanup = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

// ---- Owners of OpenSSL's objects ----

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* object) const { kFree(object); }
};
void FreeBio(BIO* bio) { BIO_free(bio); }

using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, FreeBio>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION, X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES, GENERAL_NAMES_free>>;
using Numeric = std::unique_ptr<ASN1_OCTET_STRING, Free<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>>;

absl::Status OpenSslError(absl::string_view what) {
  char why[256] = "no reason given";
  const unsigned long error = ERR_get_error();
  if (error != 0) ERR_error_string_n(error, why, sizeof(why));
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("cannot make ", what, ": ", why));
}

// ---- PEM ----

Memory Reading(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Null if there is none. Keys have no passphrase, so OpenSSL must not ask for one.
Certificate ReadCertificate(const std::string& pem) {
  Certificate found(PEM_read_bio_X509(Reading(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return found;
}

Key ReadKey(const std::string& pem) {
  const auto no_passphrase = [](char*, int, int, void*) { return 0; };
  Key found(PEM_read_bio_PrivateKey(Reading(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return found;
}

// Returns what `write` writes.
template <typename Write>
std::string Written(Write write) {
  // OpenSSL wipes this kind of memory when it frees it.
  const Memory memory(BIO_new(BIO_s_secmem()));
  if (memory == nullptr || write(memory.get()) != 1) return "";
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

std::string ToPem(X509* certificate) {
  return Written([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string ToPem(EVP_PKEY* key) {
  return Written([&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

// ---- Making ----

bool SetValidity(X509* certificate, const Validity& validity) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), absl::ToTimeT(validity.begin)) !=
             nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(validity.end)) != nullptr;
}

bool SetSerial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return false;
  bytes[0] &= 0x7f;  // positive
  BIGNUM* const number = BN_bin2bn(bytes, sizeof(bytes), nullptr);
  const bool set = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

bool SetName(X509* certificate, const std::string& name) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()),
                                    static_cast<int>(name.size()), -1, 0) == 1;
}

bool AddExtension(X509* certificate, int nid, const char* value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool AddText(GENERAL_NAMES* names, int type, const std::string& text) {
  GENERAL_NAME* const name = GENERAL_NAME_new();
  ASN1_IA5STRING* const value = ASN1_IA5STRING_new();
  ASN1_STRING_set(value, text.data(), static_cast<int>(text.size()));
  GENERAL_NAME_set0_value(name, type, value);
  return sk_GENERAL_NAME_push(names, name) > 0;
}

// `host` is a numeric address or a host's name.
bool AddHost(GENERAL_NAMES* names, const std::string& host) {
  Numeric address(a2i_IPADDRESS(host.c_str()));
  if (address == nullptr) {
    ERR_clear_error();
    return AddText(names, GEN_DNS, host);
  }
  GENERAL_NAME* const name = GENERAL_NAME_new();
  GENERAL_NAME_set0_value(name, GEN_IPADD, address.release());
  return sk_GENERAL_NAME_push(names, name) > 0;
}

bool AddAlternativeNames(X509* certificate, const CertificateOrder& order) {
  if (order.hosts.empty() && order.uris.empty()) return true;
  const Names names(GENERAL_NAMES_new());
  for (const std::string& host : order.hosts) {
    if (!AddHost(names.get(), host)) return false;
  }
  for (const std::string& uri : order.uris) {
    if (!AddText(names.get(), GEN_URI, uri)) return false;
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) ==
         1;
}

// A certificate for `key`, still without issuer, purpose and signature; null on failure.
Certificate Draft(EVP_PKEY* key, const std::string& name, const Validity& validity) {
  Certificate draft(X509_new());
  const bool made = draft != nullptr && X509_set_version(draft.get(), kVersion3) == 1 &&
                    SetSerial(draft.get()) && SetValidity(draft.get(), validity) &&
                    SetName(draft.get(), name) && X509_set_pubkey(draft.get(), key) == 1;
  return made ? std::move(draft) : nullptr;
}

// Signs the certificate with the authority's key.
bool Sign(X509* certificate, X509* authority, EVP_PKEY* key) {
  return X509_set_issuer_name(certificate, X509_get_subject_name(authority)) == 1 &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

// ---- Checking ----

absl::Status CheckCredentials(const Credentials& credentials, absl::Time now) {
  const Certificate certificate = ReadCertificate(credentials.certificate);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError("the certificate holds no PEM block CERTIFICATE");
  }
  const Key key = ReadKey(credentials.key);
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        "the key holds no PEM block PRIVATE KEY that needs no passphrase");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the key is not the certificate's; name a pair");
  }
  if (ReadCertificate(credentials.authority) == nullptr) {
    return absl::InvalidArgumentError("the authority holds no PEM block CERTIFICATE");
  }
  time_t seconds = absl::ToTimeT(now);
  if (X509_cmp_time(X509_get0_notBefore(certificate.get()), &seconds) > 0) {
    return absl::InvalidArgumentError("the certificate is not valid yet; is the clock right?");
  }
  if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &seconds) < 0) {
    return absl::InvalidArgumentError("the certificate has expired; renew it");
  }
  return absl::OkStatus();
}

// ---- The authority ----

struct CertificateAuthority::Parts {
  Key key;
  Certificate certificate;
};

CertificateAuthority::CertificateAuthority(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}
CertificateAuthority::~CertificateAuthority() = default;

absl::StatusOr<std::unique_ptr<CertificateAuthority>> CertificateAuthority::Create(
    const Validity& validity) {
  auto parts = std::make_unique<Parts>();
  parts->key.reset(EVP_EC_gen("P-256"));
  if (parts->key == nullptr) return OpenSslError("a key");
  parts->certificate = Draft(parts->key.get(), kAuthorityName, validity);
  X509* const certificate = parts->certificate.get();
  const bool signed_by_itself =
      certificate != nullptr &&
      AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(certificate, NID_key_usage, "critical,keyCertSign") &&
      Sign(certificate, certificate, parts->key.get());
  if (!signed_by_itself) return OpenSslError("an authority's certificate");
  return std::unique_ptr<CertificateAuthority>(new CertificateAuthority(std::move(parts)));
}

absl::StatusOr<Credentials> CertificateAuthority::Issue(const CertificateOrder& order) const {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("a key");
  const Certificate certificate = Draft(key.get(), order.name, order.validity);
  const char* const of_server = order.uris.empty() ? "serverAuth" : "serverAuth,clientAuth";
  const char* const purpose = order.hosts.empty() ? "clientAuth" : of_server;
  const bool issued = certificate != nullptr &&
                      AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                      AddExtension(certificate.get(), NID_key_usage, "critical,digitalSignature") &&
                      AddExtension(certificate.get(), NID_ext_key_usage, purpose) &&
                      AddAlternativeNames(certificate.get(), order) &&
                      Sign(certificate.get(), parts_->certificate.get(), parts_->key.get());
  if (!issued) return OpenSslError(absl::StrCat("a certificate for ", order.name));
  Credentials credentials = {ToPem(certificate.get()), ToPem(key.get()),
                             ToPem(parts_->certificate.get())};
  const bool written = !credentials.certificate.empty() && !credentials.key.empty() &&
                       !credentials.authority.empty();
  if (!written) return OpenSslError("text of a certificate");
  return credentials;
}

}  // namespace sluice
