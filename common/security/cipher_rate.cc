#include "common/security/cipher_rate.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

namespace sluice {
namespace {

constexpr int kRecordBytes = 1 << 14;
constexpr int kTagBytes = 16;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

// Encrypts a record as TLS does: with a nonce of its own, and a tag at its end.
bool EncryptRecord(EVP_CIPHER_CTX* context, std::array<unsigned char, kRecordBytes>& record) {
  const std::array<unsigned char, 12> nonce = {};
  std::array<unsigned char, kTagBytes> tag = {};
  int written = 0;
  return EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
         EVP_EncryptUpdate(context, record.data(), &written, record.data(), kRecordBytes) == 1 &&
         EVP_EncryptFinal_ex(context, record.data(), &written) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
}

}  // namespace

absl::StatusOr<double> MeasureCipher(absl::Duration time, const std::function<absl::Time()>& now) {
  const std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> context(EVP_CIPHER_CTX_new());
  const std::array<unsigned char, 32> key = {};
  std::array<unsigned char, kRecordBytes> record = {};
  bool works = context != nullptr && EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr,
                                                        key.data(), nullptr) == 1;
  const absl::Time began = now();
  absl::Duration taken;
  double bytes = 0;
  while (works && (bytes == 0 || taken < time)) {
    works = EncryptRecord(context.get(), record);
    bytes += kRecordBytes;
    taken = now() - began;
  }
  ERR_clear_error();
  if (!works) return absl::InternalError("OpenSSL has no AES-256-GCM");
  return bytes / absl::ToDoubleSeconds(taken);
}

}  // namespace sluice
