// What a message by RDMA costs besides the device's work: no allocation and no system call.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/verbs_link.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes);
}
void* operator new[](std::size_t bytes) {
  return counted(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tutti::verbs {
namespace {

using testing::LinkPair;

constexpr int rounds = 2'000;

/// The messages of one round: small ones that are packed, one from slots, one that is sent and received in place.
bool exchange(LinkPair& pair, std::span<std::byte> from, std::span<std::byte> into) {
  for (Link* const link : {pair.a.link.get(), pair.b.link.get()}) {
    Link& other = link == pair.a.link.get() ? *pair.b.link : *pair.a.link;
    while (other.in().invite(3, into) == Invited::later) continue;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{64}, std::size_t{3000}, from.size()}) {
      for (;;) {
        auto slot = link->out().acquire();
        if (!slot) return false;
        if (!slot->empty()) break;
      }
      if (bytes == from.size() && !link->out().offer(0, from)) return false;
      if (!link->out().commit(bytes)) return false;
    }
    for (;;) {
      auto left = link->out().flush();
      if (!left) return false;
      if (*left) break;
    }
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{64}, std::size_t{3000}, from.size()}) {
      for (;;) {
        auto here = other.in().expect(bytes);
        if (!here) return false;
        if (here->data() != nullptr) break;
      }
      for (std::size_t done = 0; bytes > 64 && done < bytes;) {
        auto here = bytes == into.size() ? other.in().land(0, into) : other.in().arrived(0, bytes);
        if (!here) return false;
        done = *here;
      }
      if (!other.in().release()) return false;
    }
  }
  return true;
}

/// From here on this thread may only end: every other system call ends the process.
bool forbid_system_calls() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const sock_fprog program{.len = sizeof rules / sizeof *rules, .filter = rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

class VerbsPath : public VerbsLink {
 protected:
  VerbsPath() : pair_({.slots = 4, .slot_bytes = 40'000}, {.inline_bytes = 128}, &segments_) {
    memory_ = *segments_.allocate(1 << 17, true);
    warm_ = exchange(pair_, from(), into()) && exchange(pair_, from(), into());
    for (int i = 0; i < 20; ++i) warm_ = warm_ && exchange(pair_, from(), into());
  }
  std::span<std::byte> from() { return {memory_, 40'000}; }
  std::span<std::byte> into() { return {memory_ + 65'536, 40'000}; }

  SegmentTable segments_;
  std::byte* memory_ = nullptr;
  LinkPair pair_;
  bool warm_ = false;
};

TEST_F(VerbsPath, NothingIsAllocated) {
  ASSERT_TRUE(warm_);
  const std::uint64_t before = allocations, direct = pair_.a.link->out().direct_messages();
  bool good = true;
  for (int i = 0; i < rounds && good; ++i) good = exchange(pair_, from(), into());
  const std::uint64_t after = allocations;
  EXPECT_TRUE(good);
  EXPECT_EQ(after, before);
  EXPECT_EQ(pair_.a.link->out().direct_messages() - direct, static_cast<std::uint64_t>(rounds));
}

TEST_F(VerbsPath, TheKernelIsNotCalled) {
  ASSERT_TRUE(warm_);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!forbid_system_calls()) ::_exit(3);
    bool good = true;
    for (int i = 0; i < rounds && good; ++i) good = exchange(pair_, from(), into());
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_FALSE(WIFSIGNALED(status)) << "a system call";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tutti::verbs
