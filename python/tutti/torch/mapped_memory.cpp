// An allocator of torch's CPU tensors whose larger blocks are memory that peers can map. Built by _mapped.py where the
// program asks for it, against the torch that runs.
#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_set>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace {

using Take = int(void** block, std::size_t bytes);
using Give = int(void* block);

class MappedAllocator final : public c10::Allocator {
 public:
  MappedAllocator(Take* take, Give* give, std::size_t bytes_min)
      : ordinary_(c10::GetAllocator(c10::kCPU)), take_(take), give_(give), bytes_min_(bytes_min) {}

  // Torch's base class has one of these two, depending on its version.
  c10::DataPtr allocate(std::size_t bytes) { return make(bytes); }
  c10::DataPtr allocate(std::size_t bytes) const { return const_cast<MappedAllocator*>(this)->make(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &release; }

  void use(bool mapped) { mapped_ = mapped; }
  long blocks() {
    const std::lock_guard lock(mutex_);
    return static_cast<long>(blocks_.size());
  }

 private:
  c10::DataPtr make(std::size_t bytes) {
    void* block = nullptr;
    if (!mapped_ || bytes < bytes_min_ || take_(&block, bytes) != 0) return ordinary_->allocate(bytes);
    const std::lock_guard lock(mutex_);
    blocks_.insert(block);
    return {block, block, &release, c10::Device(c10::kCPU)};
  }
  static void release(void* block);

  c10::Allocator* ordinary_;
  Take* take_;
  Give* give_;
  std::size_t bytes_min_;
  std::atomic<bool> mapped_ = false;
  std::mutex mutex_;
  std::unordered_set<void*> blocks_;
};

MappedAllocator* installed = nullptr;

void MappedAllocator::release(void* block) {
  bool ours = false;
  {
    const std::lock_guard lock(installed->mutex_);
    ours = installed->blocks_.erase(block) > 0;
  }
  if (ours) {
    installed->give_(block);
  } else {
    installed->ordinary_->raw_deleter()(block);
  }
}

}  // namespace

/// Once; for the rest of the process, as tensors outlive whatever asked for this.
extern "C" void tutti_torch_install(Take* take, Give* give, std::size_t bytes_min) {
  installed = new MappedAllocator(take, give, bytes_min);
  c10::SetCPUAllocator(installed, 255);
}

extern "C" void tutti_torch_use(int mapped) {
  installed->use(mapped != 0);
}

/// How many blocks of mapped memory there are.
extern "C" long tutti_torch_blocks() {
  return installed->blocks();
}
