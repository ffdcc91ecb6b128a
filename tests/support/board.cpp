#include "support/board.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cassert>
#include <climits>
#include <cstring>

namespace tutti::testing {
namespace {

constexpr std::size_t page = 4096;

std::size_t bytes_for(std::size_t words) {
  return (sizeof(Board) + words * sizeof(std::atomic<std::uint64_t>) + 64 + page - 1) / page * page;
}

/// The words follow the board.
std::atomic<std::uint64_t>* words_of(Board* board) {
  auto* const end = reinterpret_cast<std::byte*>(board) + (sizeof(Board) + 63) / 64 * 64;
  return reinterpret_cast<std::atomic<std::uint64_t>*>(end);
}

}  // namespace

std::vector<const Board::Look*>& Board::looks() {
  static std::vector<const Look*> all;
  return all;
}

Board* Board::make(std::size_t words) {
  void* const memory =
      ::mmap(nullptr, bytes_for(words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert(memory != MAP_FAILED);
  auto* const board = static_cast<Board*>(memory);
  board->words_ = words;
  return board;
}

void Board::free(Board* board) {
  ::munmap(board, bytes_for(board->words_));
}

std::atomic<std::uint64_t>& Board::word(std::size_t index) {
  assert(index < words_);
  return words_of(this)[index];
}

/// At most 10 ms, so that the end of a test is noticed although nobody rings for it.
void Board::pause(std::atomic<std::uint32_t>& bell, std::uint32_t seen) {
  const timespec limit{.tv_sec = 0, .tv_nsec = 10'000'000};
  ::syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void Board::raise(std::size_t index, std::uint64_t value) {
  word(index).store(value, std::memory_order_release);
  bell_.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &bell_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Board::wait_for(std::size_t index, std::uint64_t value, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto seen = bell_.load(std::memory_order_acquire);
    if (word(index).load(std::memory_order_acquire) >= value) return true;
    if (over() || std::chrono::steady_clock::now() >= deadline) return false;
    for (const Look* const look : looks()) (*look)();
    pause(bell_, seen);
  }
}

bool Board::meet(int ranks) {
  const auto size = static_cast<std::uint64_t>(ranks);
  const std::uint64_t place = met_.fetch_add(1, std::memory_order_acq_rel);
  const std::uint64_t all = (place / size + 1) * size;
  if (place + 1 == all) {
    bell_.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &bell_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return !over();
  }
  for (;;) {
    const auto seen = bell_.load(std::memory_order_acquire);
    if (met_.load(std::memory_order_acquire) >= all) return true;  // whatever has become of the others since
    if (over()) return false;
    pause(bell_, seen);
  }
}

tuttiUniqueId Board::share_id(std::size_t nth, bool mine) {
  assert(nth < ids_.size());
  Id& id = ids_[nth];
  if (mine) {
    if (tuttiGetUniqueId(&id.id) == tuttiSuccess) id.there.store(1, std::memory_order_release);
    bell_.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &bell_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return id.id;
  }
  while (!over() && id.there.load(std::memory_order_acquire) == 0) {
    const auto seen = bell_.load(std::memory_order_acquire);
    if (id.there.load(std::memory_order_acquire) == 0) pause(bell_, seen);
  }
  return id.id;
}

void Board::doing(int rank, const std::string& what) {
  auto& line = doing_[static_cast<std::size_t>(rank)];
  const std::size_t length = std::min(what.size(), line.size() - 1);
  std::memcpy(line.data(), what.data(), length);
  line[length] = 0;
}

std::string Board::doing(int rank) const {
  const auto& line = doing_[static_cast<std::size_t>(rank)];
  return std::string(line.data(), ::strnlen(line.data(), line.size()));
}

}  // namespace tutti::testing
