#include "transport/verbs/memory.h"

#include <sys/resource.h>

#include <cerrno>

#include <fmt/format.h>

namespace tutti::verbs {
namespace {

Error refused(const Endpoint& endpoint, std::size_t bytes, int reason) {
  Error error{.code = Code::system,
              .what = fmt::format("register {} bytes for {}", bytes, endpoint.port.text()),
              .sys_errno = reason};
  rlimit limit{};
  if (reason == ENOMEM && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    error.what += fmt::format(
        ": this process may lock {} bytes of memory; raise the limit (ulimit -l unlimited, or LimitMEMLOCK=infinity of "
        "its service)",
        limit.rlim_cur);
  return error;
}

}  // namespace

Result<RegisteredMemory> RegisteredMemory::make(const std::shared_ptr<Endpoint>& endpoint, std::size_t bytes,
                                                int access) {
  RegisteredMemory memory;
  memory.data_.reset(static_cast<std::byte*>(::operator new(bytes, page, std::nothrow)));
  if (!memory.data_) return refused(*endpoint, bytes, ENOMEM);
  memory.bytes_ = bytes;
  Mr* const mr = endpoint->library().ibv_reg_mr(endpoint->pd(), memory.data(), bytes, access);
  if (mr == nullptr) return refused(*endpoint, bytes, errno);
  memory.mr_ = std::unique_ptr<Mr, Deregister>(mr, Deregister{endpoint});
  return memory;
}

}  // namespace tutti::verbs
