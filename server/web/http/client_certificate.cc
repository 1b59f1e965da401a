#include "server/web/http/client_certificate.h"

#include <gnutls/gnutls.h>

#include <string>

#include "common/security/certificate_facts.h"

namespace sluice {
namespace {

std::string ToPem(const gnutls_datum_t& der) {
  gnutls_datum_t pem = {};
  if (gnutls_pem_base64_encode2("CERTIFICATE", &der, &pem) != GNUTLS_E_SUCCESS) return "";
  std::string text(reinterpret_cast<const char*>(pem.data), pem.size);
  gnutls_free(pem.data);
  return text;
}

}  // namespace

Roles RolesOfCaller(void* session) {
  auto* const tls = static_cast<gnutls_session_t>(session);
  unsigned count = 0;
  const gnutls_datum_t* const shown = gnutls_certificate_get_peers(tls, &count);
  if (shown == nullptr || count == 0) return Roles();
  unsigned wrong = 0;
  if (gnutls_certificate_verify_peers2(tls, &wrong) != GNUTLS_E_SUCCESS || wrong != 0) {
    return Roles();
  }
  const auto facts = FactsOf(ToPem(shown[0]));
  return facts.ok() && facts->may_call ? facts->roles : Roles();
}

}  // namespace sluice
