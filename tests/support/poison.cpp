// Does anybody use memory after it was freed? Preloaded into a program, this fills what is freed with a pattern, keeps
// it for a while, and aborts if the pattern has changed by then; whoever reads it meets the pattern. For programs,
// Python among them, whose memory a sanitizer does not see.
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" void __libc_free(void* block);           // NOLINT: glibc's names
extern "C" void* __libc_malloc(std::size_t bytes);  // NOLINT

namespace {

constexpr unsigned char pattern = 0xA5;
constexpr std::size_t blocks_max = 1 << 14;
constexpr std::size_t bytes_max = std::size_t(64) << 20;

struct Block {
  unsigned char* at;
  std::size_t bytes;
};

// The blocks that were freed last, oldest first. Zeros from the start, as memory is freed before constructors run.
Block blocks[blocks_max];
std::size_t oldest, count, bytes_held;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void require_untouched(const Block& block) {
  for (std::size_t i = 0; i < block.bytes; ++i) {
    if (block.at[i] == pattern) continue;
    constexpr char words[] = "poison: memory was written to after it was freed\n";
    (void)!::write(STDERR_FILENO, words, sizeof words - 1);
    std::abort();
  }
}

/// Gives the oldest block back, with the mutex held.
void release() {
  const Block block = blocks[oldest % blocks_max];
  ++oldest;
  --count;
  bytes_held -= block.bytes;
  require_untouched(block);
  __libc_free(block.at);
}

// A child that is forked while another thread holds the mutex could never free anything.
[[gnu::constructor]] void follow_forks() {
  ::pthread_atfork([] { ::pthread_mutex_lock(&mutex); }, [] { ::pthread_mutex_unlock(&mutex); },
                   [] { ::pthread_mutex_unlock(&mutex); });
}

[[gnu::destructor]] void look_at_all() {
  ::pthread_mutex_lock(&mutex);
  for (std::size_t i = 0; i < count; ++i) require_untouched(blocks[(oldest + i) % blocks_max]);
  ::pthread_mutex_unlock(&mutex);
}

}  // namespace

extern "C" void free(void* block) {
  if (block == nullptr) return;
  const Block freed{static_cast<unsigned char*>(block), ::malloc_usable_size(block)};
  std::memset(freed.at, pattern, freed.bytes);
  ::pthread_mutex_lock(&mutex);
  while (count == blocks_max || (count > 0 && bytes_held + freed.bytes > bytes_max)) release();
  blocks[(oldest + count) % blocks_max] = freed;
  ++count;
  bytes_held += freed.bytes;
  ::pthread_mutex_unlock(&mutex);
}

extern "C" void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return __libc_malloc(bytes);
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  void* const made = __libc_malloc(bytes);
  if (made == nullptr) return nullptr;
  const std::size_t had = ::malloc_usable_size(block);
  std::memcpy(made, block, had < bytes ? had : bytes);
  free(block);
  return made;
}
