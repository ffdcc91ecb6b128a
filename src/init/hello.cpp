#include "init/hello.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace tutti {
namespace {

template <class T>
Result<T> read(const Blob& blob, const char* what) {
  if (blob.size() != sizeof(T))
    return Error{.code = Code::remote,
                 .what = fmt::format("{} of {} bytes where {} were expected", what, blob.size(), sizeof(T))};
  T value;
  std::memcpy(&value, blob.data(), sizeof value);
  return value;
}

}  // namespace

Result<Hello> read_hello(const Blob& blob) {
  auto hello = read<Hello>(blob, "a greeting");
  if (hello && hello->version != Hello::version_value)
    return Error{
        .code = Code::remote,
        .what = fmt::format("a greeting of version {}, this is version {}", hello->version, Hello::version_value)};
  return hello;
}

Result<Sharing> read_sharing(const Blob& blob) {
  return read<Sharing>(blob, "a word on sharing memory");
}

Result<std::vector<PeerAddress>> read_located(const Blob& blob) {
  auto located = read<Located>(blob, "a list of addresses");
  if (!located) return std::move(located).error();
  std::vector<PeerAddress> addresses;
  for (const auto& address : located->addresses)
    if (address.host[0] != '\0')
      addresses.push_back({.at = {.host = get_text(address.host), .port = address.port},
                           .nic = address.nic,
                           .mbps = std::max(0, address.mbps)});
  return addresses;
}

Result<Verdict> read_verdict(const Blob& blob) {
  return read<Verdict>(blob, "a verdict");
}

}  // namespace tutti
