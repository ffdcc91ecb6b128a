// The functions of this program come before those of the C library, also for the library under test.
#include "support/failing_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace tutti::testing {
namespace {

struct Plan {
  std::atomic<unsigned> calls{0};  // a bit per kind; 0: no plan
  std::atomic<int> left{0};
  std::atomic<int> error{0};
  std::atomic<bool> always{false};
  std::atomic<bool> failed{false};
  std::function<void()> before;  // written before `calls`
};

Plan& plan() {
  static Plan one;
  return one;
}

unsigned bit(SystemCall call) {
  return 1u << static_cast<unsigned>(call);
}

/// The error of this call; 0: it goes on.
int fails(SystemCall call) {
  Plan& now = plan();
  if ((now.calls.load() & bit(call)) == 0) return 0;
  const int left = now.left.fetch_sub(1);
  if (left > 1 || (left < 1 && !now.always.load())) return 0;
  if (now.before) {
    now.before();
    return 0;
  }
  now.failed = true;
  return now.error;
}

bool is_of_host(int fd) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

/// What a call of the kernel gives, unless the call is to fail.
template <class... Arguments>
int call_kernel(SystemCall call, long number, Arguments... arguments) {
  if (const int error = fails(call); error != 0) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(number, arguments...));
}

}  // namespace

std::vector<SystemCall> all_calls() {
  return {SystemCall::memfd,  SystemCall::eventfd,  SystemCall::socket, SystemCall::accept, SystemCall::accept_on_host,
          SystemCall::listen, SystemCall::truncate, SystemCall::thread, SystemCall::random};
}

const char* name(SystemCall call) {
  switch (call) {
    case SystemCall::memfd: return "memfd_create";
    case SystemCall::eventfd: return "eventfd";
    case SystemCall::socket: return "socket";
    case SystemCall::accept: return "accept4";
    case SystemCall::accept_on_host: return "accept4 on this host";
    case SystemCall::listen: return "listen";
    case SystemCall::truncate: return "ftruncate";
    case SystemCall::thread: return "pthread_create";
    case SystemCall::random: return "getrandom";
  }
  return "";
}

void before_call(SystemCall call, std::function<void()> then) {
  plan().before = std::move(then);
  fail_calls({call}, 1, 0);
}

void fail_calls(const std::vector<SystemCall>& calls, int nth, int error, bool always) {
  Plan& now = plan();
  now.calls = 0;
  now.left = nth;
  now.error = error;
  now.always = always;
  now.failed = false;
  unsigned bits = 0;
  for (const SystemCall call : calls) bits |= bit(call);
  now.calls = bits;
}

bool stop_failing() {
  plan().calls = 0;
  return plan().failed;
}

}  // namespace tutti::testing

using tutti::testing::call_kernel;
using tutti::testing::fails;
using tutti::testing::is_of_host;
using tutti::testing::SystemCall;

// NOLINTBEGIN: the C library's names
#pragma GCC visibility push(default)
extern "C" {

int memfd_create(const char* name, unsigned flags) noexcept {
  return call_kernel(SystemCall::memfd, SYS_memfd_create, name, flags);
}

int eventfd(unsigned count, int flags) noexcept {
  return call_kernel(SystemCall::eventfd, SYS_eventfd2, count, flags);
}

int socket(int domain, int type, int protocol) noexcept {
  return call_kernel(SystemCall::socket, SYS_socket, domain, type, protocol);
}

int accept4(int fd, struct sockaddr* address, socklen_t* length, int flags) {
  const auto kind = is_of_host(fd) ? SystemCall::accept_on_host : SystemCall::accept;
  return call_kernel(kind, SYS_accept4, fd, address, length, flags);
}

int listen(int fd, int waiting) noexcept {
  return call_kernel(SystemCall::listen, SYS_listen, fd, waiting);
}

int ftruncate(int fd, off_t bytes) noexcept {
  return call_kernel(SystemCall::truncate, SYS_ftruncate, fd, bytes);
}

ssize_t getrandom(void* to, size_t bytes, unsigned flags) {
  return call_kernel(SystemCall::random, SYS_getrandom, to, bytes, flags);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
  if (const int error = fails(SystemCall::thread); error != 0) return error;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, run, argument);
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND
