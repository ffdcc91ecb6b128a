#include "support/buffer.h"

#include <cstdlib>

#include "support/fake_cuda.h"
#include "support/launch_ranks.h"

namespace tutti::testing {
namespace {

/// Set where device memory is a real GPU's (support/gpu_ranks.h): then it must be managed, for tests look at it.
const char* real_driver() {
  return std::getenv("TUTTI_TEST_CUDA");
}

void* managed(std::size_t bytes) {
  cuda::Address at = 0;
  using Allocate = int(cuda::Address*, std::size_t, unsigned);
  EXPECT_EQ(cuda_function<Allocate>(real_driver(), "cuMemAllocManaged")(&at, bytes, cuda::managed_global), 0);
  return reinterpret_cast<void*>(at);  // NOLINT: an address
}

}  // namespace

Buffer::Buffer(Memory memory, std::size_t bytes, std::size_t misaligned)
    : memory_(memory), bytes_(bytes), misaligned_(misaligned) {
  void* base = nullptr;
  if (memory == Memory::mapped)
    EXPECT_TRUE(ok(tuttiMemAlloc(&base, total())));
  else if (memory == Memory::device && real_driver() != nullptr)
    base = managed(total());
  else if (memory == Memory::device)
    EXPECT_TRUE(ok(tuttiMemAllocDevice(&base, total(), 0)));
  else
    base = std::malloc(total());
  base_ = static_cast<std::byte*>(base);
  EXPECT_NE(base_, nullptr);
  if (base_ == nullptr) std::abort();
  poison();
}

Buffer::~Buffer() {
  if (memory_ == Memory::heap)
    std::free(base_);
  else if (memory_ == Memory::device && real_driver() != nullptr)
    EXPECT_EQ(cuda_function<int(cuda::Address)>(real_driver(), "cuMemFree")(reinterpret_cast<cuda::Address>(base_)), 0);
  else
    EXPECT_TRUE(ok(tuttiMemFree(base_)));
}

void Buffer::poison() {
  for (std::size_t i = 0; i < total(); ++i) base_[i] = poison_at(i);
}

bool Buffer::holds_poison(std::size_t from, std::size_t to) const {
  for (std::size_t i = from; i < to; ++i)
    if (base_[i] != poison_at(i)) return false;
  return true;
}

bool Buffer::poisoned(std::size_t from, std::size_t bytes) const {
  const std::size_t begin = guard_bytes + misaligned_ + from;
  return holds_poison(begin, begin + bytes);
}

bool Buffer::guards_intact() const {
  const std::size_t begin = guard_bytes + misaligned_;
  return holds_poison(0, begin) && holds_poison(begin + bytes_, total());
}

}  // namespace tutti::testing
