#include "fabric.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <mutex>

#include "peers.h"

namespace tutti::testing::fake_verbs {
namespace {

constexpr std::uint64_t magic = 0x7475747469'0001;
constexpr std::uint64_t arena_bytes = std::uint64_t{1} << 31;  // address space: pages are taken when written
constexpr std::uint64_t tables_bytes = (sizeof(SharedTables) + 4095) / 4096 * 4096;
constexpr std::uint64_t full = ~std::uint64_t{0};

void make(SharedTables& tables) {
  if (tables.magic.load() == magic) return;
  tables.lock.make();
  tables.magic.store(magic);
}

void* map_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return MAP_FAILED;
  void* at = MAP_FAILED;
  if (::flock(file, LOCK_EX) == 0 && ::ftruncate(file, static_cast<off_t>(tables_bytes + arena_bytes)) == 0)
    at = ::mmap(nullptr, tables_bytes + arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at != MAP_FAILED) make(*static_cast<SharedTables*>(at));
  ::flock(file, LOCK_UN);  // the mapping would keep it locked
  ::close(file);
  return at;
}

}  // namespace

Fabric* Fabric::open(const std::string& path) {
  void* const at = path.empty() ? ::mmap(nullptr, tables_bytes + arena_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                : map_file(path);
  if (at == MAP_FAILED) return nullptr;
  make(*static_cast<SharedTables*>(at));
  return new Fabric(static_cast<SharedTables*>(at));
}

Fabric::~Fabric() {
  ::munmap(tables_, tables_bytes + arena_bytes);
}

char* Fabric::arena() const {
  return reinterpret_cast<char*>(tables_) + tables_bytes;
}

std::uint64_t Fabric::allocate(std::uint64_t bytes) {
  const std::uint64_t rounded = std::bit_ceil(bytes < 64 ? 64 : bytes);
  std::uint64_t& first = tables_->arena_free[static_cast<std::size_t>(std::countr_zero(rounded))];
  if (first != 0) {  // offset + 1 of a block that begins with the next one's
    const std::uint64_t at = first - 1;
    first = *reinterpret_cast<std::uint64_t*>(arena() + at);
    return at;
  }
  if (tables_->arena_used + rounded > arena_bytes) return full;
  tables_->arena_used += rounded;
  return tables_->arena_used - rounded;
}

void Fabric::release(std::uint64_t at, std::uint64_t bytes) {
  const std::uint64_t rounded = std::bit_ceil(bytes < 64 ? 64 : bytes);
  std::uint64_t& first = tables_->arena_free[static_cast<std::size_t>(std::countr_zero(rounded))];
  *reinterpret_cast<std::uint64_t*>(arena() + at) = first;
  first = at + 1;
}

std::uint32_t Fabric::join() {
  const std::lock_guard guard(tables_->lock);
  clear_dead();
  for (std::uint32_t slot = 0; slot < process_slots; ++slot) {
    SharedProcess& process = tables_->processes[slot];
    if (process.pid.load() != 0) continue;
    process.attention.store(0);
    process.ports_down.store(0);
    process.serial.store(next_serial());
    process.pid.store(static_cast<std::uint32_t>(::getpid()));
    return slot;
  }
  return no_slot;
}

void Fabric::leave(std::uint32_t process) {
  const std::lock_guard guard(tables_->lock);
  clear(process);
}

void Fabric::clear_dead() {
  for (std::uint32_t slot = 0; slot < process_slots; ++slot)
    if (const std::uint32_t pid = tables_->processes[slot].pid.load(); pid != 0 && !is_running(pid)) clear(slot);
}

void Fabric::clear(std::uint32_t process) {
  for (std::uint32_t slot = 0; slot < tables_->qps_high; ++slot)
    if (SharedQp& one = qp(slot); one.capacity != 0 && one.process == process) clear_qp(one);
  for (std::uint32_t slot = 0; slot < tables_->cqs_high; ++slot)
    if (SharedCq& one = cq(slot); one.used.load() && one.process == process) clear_cq(one);
  for (std::uint32_t slot = 0; slot < tables_->mrs_high; ++slot)
    if (SharedMr& one = tables_->mrs[slot]; one.taken && one.region.process == process) {
      one.key.store(0);
      one.taken = false;
    }
  for (std::uint32_t slot = 0; slot < tables_->windows_high; ++slot)
    if (SharedWindow& one = tables_->windows[slot]; one.taken && one.process == process) {
      unbind(one);
      one.taken = false;
    }
  tables_->processes[process].pid.store(0);
}

std::uint32_t Fabric::take_qp(std::uint32_t process, std::uint32_t receives) {
  const std::lock_guard guard(tables_->lock);
  for (std::uint32_t slot = 0; slot < qp_slots; ++slot) {
    SharedQp& qp = tables_->qps[slot];
    if (qp.capacity != 0) continue;
    const std::uint64_t at = allocate(receives * sizeof(PostedReceive));
    if (at == full) return no_slot;
    tables_->qps_high = std::max(tables_->qps_high, slot + 1);
    if (!qp.made) qp.lock.make();
    qp.made = true;
    const std::lock_guard inner(qp.lock);
    qp.ring = at;
    qp.process = process;
    qp.peer = qp.rq_psn = qp.sq_psn = qp.access = qp.head = qp.tail = 0;
    qp.state.store(verbs::QpState::reset);
    qp.event.store(0);
    qp.starved.store(0);
    qp.deaf = false;
    qp.overlooked = 0;
    ++qp.generation;
    qp.capacity = receives;
    return slot;
  }
  return no_slot;
}

std::uint32_t Fabric::number_of(std::uint32_t qp_slot) const {
  constexpr std::uint32_t generations = (1 << 24) / qp_slots;  // numbers have 24 bits, and are not 0
  return (tables_->qps[qp_slot].generation % (generations - 1) + 1) * qp_slots + qp_slot;
}

std::uint32_t Fabric::take_cq(std::uint32_t process, std::uint32_t entries) {
  const std::lock_guard guard(tables_->lock);
  for (std::uint32_t slot = 0; slot < cq_slots; ++slot) {
    SharedCq& cq = tables_->cqs[slot];
    if (cq.used.load()) continue;
    const std::uint64_t at = allocate(entries * sizeof(CqEntry));
    if (at == full) return no_slot;
    tables_->cqs_high = std::max(tables_->cqs_high, slot + 1);
    if (!cq.made) cq.lock.make();
    cq.made = true;
    const std::lock_guard inner(cq.lock);
    cq.ring = at;
    cq.capacity = entries;
    cq.process = process;
    cq.broken.store(false);
    cq.head.store(0);
    cq.tail.store(0);
    cq.armed = false;
    cq.wake = -1;
    cq.wake_id = 0;
    cq.unfetched = 0;
    cq.used.store(true);
    return slot;
  }
  return no_slot;
}

std::uint32_t Fabric::take_mr(const Region& region) {
  constexpr std::uint32_t generations = (1u << 31) / mr_slots;
  const std::lock_guard guard(tables_->lock);
  for (std::uint32_t slot = 0; slot < mr_slots; ++slot) {
    SharedMr& mr = tables_->mrs[slot];
    if (mr.taken) continue;
    tables_->mrs_high = std::max(tables_->mrs_high, slot + 1);
    mr.taken = true;
    mr.region = region;
    mr.windows.store(0);
    const std::uint32_t key = (++mr.generation % (generations - 1) + 1) * mr_slots + slot;
    mr.key.store(key);
    return key;
  }
  return no_slot;
}

std::uint32_t Fabric::take_window(std::uint32_t process) {
  constexpr std::uint32_t of_window = 1u << 31;
  const std::lock_guard guard(tables_->lock);
  for (std::uint32_t slot = 0; slot < window_slots; ++slot) {
    SharedWindow& window = tables_->windows[slot];
    if (window.taken) continue;
    tables_->windows_high = std::max(tables_->windows_high, slot + 1);
    window.taken = true;
    window.process = process;
    window.last_key = of_window | slot << 8;
    return window.last_key;
  }
  return no_slot;
}

void Fabric::give_window(std::uint32_t key) {
  const std::lock_guard guard(tables_->lock);
  unbind(*window_of(key));
  window_of(key)->taken = false;
}

void Fabric::clear_qp(SharedQp& qp) {
  const std::lock_guard inner(qp.lock);
  qp.number.store(0);
  release(qp.ring, qp.capacity * sizeof(PostedReceive));
  qp.capacity = 0;
}

void Fabric::clear_cq(SharedCq& cq) {
  const std::lock_guard inner(cq.lock);
  release(cq.ring, cq.capacity * sizeof(CqEntry));
  cq.used.store(false);
}

void Fabric::give_qp(std::uint32_t slot) {
  const std::lock_guard guard(tables_->lock);
  clear_qp(tables_->qps[slot]);
}

void Fabric::give_cq(std::uint32_t slot) {
  const std::lock_guard guard(tables_->lock);
  clear_cq(tables_->cqs[slot]);
}

void Fabric::give_mr(std::uint32_t key) {
  const std::lock_guard guard(tables_->lock);
  mr_of(key)->taken = false;
}

void ring(SharedProcess& process) {
  process.doorbell.fetch_add(1);
  ::syscall(SYS_futex, &process.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace tutti::testing::fake_verbs
