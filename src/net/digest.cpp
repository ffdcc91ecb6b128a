#include "net/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/bytes.h"
#include "base/descriptors.h"

namespace tutti {
namespace {

unsigned char* raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}

}  // namespace

Result<Digest> sha256(std::span<const std::byte> bytes) {
  Digest digest{};
  if (::EVP_Digest(bytes.data(), bytes.size(), raw(digest.data()), nullptr, ::EVP_sha256(), nullptr) != 1)
    return system_error("SHA-256 is not available");
  return digest;
}

Result<Digest> hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes) {
  Digest digest{};
  if (::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), raw(digest.data()),
             nullptr) == nullptr)
    return system_error("HMAC-SHA256 is not available");
  return digest;
}

Result<Digest> hmac_of(std::span<const std::byte> key, std::string_view use, std::span<const std::byte> bytes,
                       std::span<const std::byte> more) {
  return hmac_sha256(key, serialized(use, bytes, more));
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::byte> bytes) {
  ::OPENSSL_cleanse(bytes.data(), bytes.size());
}

void prepare_digests() {
  const HeldStdio held;  // libcrypto may keep a source of random bytes open
  // Without an option this call does nothing.
  ::OPENSSL_init_crypto(OPENSSL_INIT_ADD_ALL_DIGESTS, nullptr);
}

}  // namespace tutti
