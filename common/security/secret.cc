#include "common/security/secret.h"

#include <openssl/crypto.h>

namespace sluice {

bool SameSecret(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void Wipe(std::string& secret) {
  OPENSSL_cleanse(&secret[0], secret.size());
  secret.clear();
}

}  // namespace sluice
