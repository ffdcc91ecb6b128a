#include "transport/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/blocked_signal.h"
#include "base/descriptors.h"
#include "transport/free_memory.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace tutti {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_page_bytes = 2 << 20;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<void> check_room(std::size_t bytes) {
  const auto room = free_memory();
  if (!room || bytes <= room->bytes) return {};
  return system_error(fmt::format("{} bytes of memory are needed, {} are left ({}): ask for less, or raise the limit",
                                  bytes, room->bytes, room->limit),
                      ENOMEM);
}

/// A memfd that cannot be shortened any more: a process that maps it need not fear SIGBUS.
Result<UniqueFd> sealed_memory(std::size_t bytes) {
  rlimit limit{};
  // Found out before anything is made. Another thread may lower the limit meanwhile.
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
    return system_error(
        fmt::format("{} bytes of shared memory are needed, files may have {}: raise ulimit -f", bytes, limit.rlim_cur),
        EFBIG);
  const BlockedSignal beyond_limit(SIGXFSZ);
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd fd(above_stdio([&] { return ::memfd_create("tutti", flags | MFD_NOEXEC_SEAL); }));
  if (!fd && errno == EINVAL)
    fd = UniqueFd(above_stdio([&] { return ::memfd_create("tutti", flags); }));  // Linux before 6.3
  if (!fd) return system_error("make shared memory", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return system_error(fmt::format("size shared memory to {} bytes (EFBIG: raise ulimit -f)", bytes), errno);
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return system_error("seal the size of shared memory", errno);
  return fd;
}

/// Allocates the pages of [offset, offset + bytes) now. If there is no memory, this
/// returns an error; a later touch would raise a signal.
Result<void> populate(int fd, const Mapping& mapping, std::size_t offset, std::size_t bytes) {
  std::byte* const at = mapping.data() + offset;
  const auto no_memory = [bytes](int why) { return system_error(fmt::format("get {} bytes of memory", bytes), why); };
  auto populated = populate_now(at, bytes);
  if (!populated) return no_memory(populated.error().sys_errno);
  if (*populated) return {};
  // Reserve, which reports errors, then touch. What a filter forbids must not fail an allocation.
  int reserved = 0;
  do reserved = ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (reserved != 0 && errno == EINTR);
  if (reserved != 0 && !is_not_offered(errno)) return no_memory(errno);
  for (std::size_t done = 0; done < bytes; done += page_bytes) const_cast<volatile std::byte&>(at[done]) = at[done];
  return {};
}

// Only for users' memory: with huge pages, sparse areas would swell.
void ask_for_huge_pages(const Mapping& mapping) {
  if (mapping.bytes() >= huge_page_bytes) ::madvise(mapping.data(), mapping.bytes(), MADV_HUGEPAGE);
}

struct Range {
  std::size_t offset;
  std::size_t bytes;
};

/// The ranges of a sparse file that have pages.
std::vector<Range> data_ranges(int fd, std::size_t bytes) {
  std::vector<Range> ranges;
  for (std::size_t at = 0; at < bytes;) {
    const off_t begin = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0) break;  // ENXIO: no data to the end
    const off_t end = ::lseek(fd, begin, SEEK_HOLE);
    if (end <= begin) break;
    ranges.push_back({.offset = static_cast<std::size_t>(begin), .bytes = static_cast<std::size_t>(end - begin)});
    at = static_cast<std::size_t>(end);
  }
  return ranges;
}

}  // namespace

void SegmentTable::prefer_node(Mapping& mapping, int node) {
  if (node < 0) return;
  if (auto preferred = mapping.prefer_node(node); !preferred)
    node_refused_.store(preferred.error().sys_errno, std::memory_order_relaxed);
}

Result<std::byte*> SegmentTable::allocate(std::size_t bytes, bool touch, int node) {
  const std::size_t unit = bytes >= huge_page_bytes ? huge_page_bytes : page_bytes;
  if (bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max()) - unit)
    return system_error(fmt::format("{} bytes of shared memory are more than any process can have", bytes), ENOMEM);
  const std::size_t whole = std::max((bytes + unit - 1) / unit, std::size_t{1}) * unit;
  if (touch) TUTTI_TRY(check_room(whole));

  auto fd = TUTTI_TRY(sealed_memory(whole));
  auto mapping = TUTTI_TRY(Mapping::shared(fd.get(), whole));
  prefer_node(mapping, node);
  if (touch) {
    ask_for_huge_pages(mapping);
    TUTTI_TRY(populate(fd.get(), mapping, 0, whole));
  }

  // A forked child inherits the mapping, but never calls tutti; what it stores there is its own business.
  std::byte* const at = mapping.data();
  const std::unique_lock lock(mutex_);
  segments_.emplace(
      reinterpret_cast<std::uintptr_t>(at),
      Owned{.name = new_name(), .fd = std::move(fd), .mapping = std::move(mapping), .touched = touch, .node = node});
  return at;
}

SegmentName SegmentTable::new_name() {
  if (next_id_ == 0) next_id_ = 1;
  return {.id = next_id_++};
}

Result<void> SegmentTable::free(std::byte* at) {
  decltype(segments_)::node_type freed;  // unmapped after the lock is released: unmapping can take long
  const std::unique_lock lock(mutex_);
  const auto known = segments_.find(reinterpret_cast<std::uintptr_t>(at));
  if (known != segments_.end() && known->second.adopters == 0) freed = segments_.extract(known);
  if (freed.empty())
    return invalid_argument(fmt::format("{} is not the start of memory from tuttiMemAlloc", fmt::ptr(at)));
  retired_.fetch_add(1, std::memory_order_release);
  return {};
}

template <class Segments>
auto* SegmentTable::around(Segments& segments, const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  auto above = segments.lower_bound(begin + bytes);
  const bool any = above != segments.begin() && (--above)->first + above->second.mapping.bytes() > begin;
  return any ? &above->second : nullptr;
}

Result<void> SegmentTable::adopt(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / page_bytes * page_bytes;
  const std::uintptr_t end =
      (reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size() + page_bytes - 1) / page_bytes * page_bytes;
  const std::span pages(reinterpret_cast<std::byte*>(begin), end - begin);
  const auto refuse = [&](const char* why) {
    return invalid_argument(fmt::format("{} bytes at {} cannot become memory that peers map: {}", memory.size(),
                                        fmt::ptr(memory.data()), why));
  };
  const std::lock_guard one_at_a_time(adopting_);
  {
    const std::unique_lock lock(mutex_);
    if (Owned* const there = around(segments_, pages.data(), pages.size())) {
      const std::byte* const data = there->mapping.data();
      if (pages.data() < data || pages.data() + pages.size() > data + there->mapping.bytes())
        return refuse("some of it is such memory already");
      if (there->adopters > 0) ++there->adopters;
      return {};
    }
  }
  if (!is_private_anonymous(pages)) return refuse("it is not private, anonymous, writable memory, as from malloc");
  TUTTI_TRY(check_room(pages.size()));
  auto fd = TUTTI_TRY(sealed_memory(pages.size()));
  {
    auto fresh = TUTTI_TRY(Mapping::shared(fd.get(), pages.size()));
    TUTTI_TRY(populate(fd.get(), fresh, 0, pages.size()));
    copy_pages(fresh.data(), pages.data(), pages.size());
  }
  const std::unique_lock lock(mutex_);
  auto mapping = TUTTI_TRY(Mapping::shared_over(pages.data(), fd.get(), pages.size()));
  segments_.emplace(begin,
                    Owned{.name = new_name(), .fd = std::move(fd), .mapping = std::move(mapping), .adopters = 1});
  return {};
}

void SegmentTable::disown(std::span<std::byte> memory) {
  const std::lock_guard one_at_a_time(adopting_);
  decltype(segments_)::node_type disowned;
  {
    const std::unique_lock lock(mutex_);
    Owned* const there = around(segments_, memory.data(), memory.size());
    if (there == nullptr || there->adopters == 0) return;
    if (there->adopters > 1) return void(--there->adopters);
    disowned = segments_.extract(reinterpret_cast<std::uintptr_t>(there->mapping.data()));
  }
  const bool is_private{disowned.mapped().mapping.turn_private()};
  const std::unique_lock lock(mutex_);
  if (!is_private) return void(segments_.insert(std::move(disowned)));
  retired_.fetch_add(1, std::memory_order_release);
}

std::optional<SegmentLocation> SegmentTable::find(const void* at, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  const Owned* const there = around(segments_, at, 1);
  if (there == nullptr) return std::nullopt;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - there->mapping.data());
  if (bytes > there->mapping.bytes() - offset) return std::nullopt;
  return SegmentLocation{.name = there->name, .offset = offset};
}

const SegmentTable::Owned* SegmentTable::named(SegmentName name) const {
  for (const auto& [start, owned] : segments_)
    if (owned.name == name) return &owned;
  return nullptr;
}

void SegmentTable::stop_sharing(const std::byte* at) {
  const std::unique_lock lock(mutex_);
  const auto found = segments_.find(reinterpret_cast<std::uintptr_t>(at));
  if (found != segments_.end()) found->second.fd.reset();
}

Result<SegmentTable::Export> SegmentTable::share(SegmentName name) const {
  const std::shared_lock lock(mutex_);
  const Owned* const owned = named(name);
  const auto offered = offered_.find(name);
  const bool is_offered = offered != offered_.end();
  if (!is_offered && (owned == nullptr || !owned->fd))
    return invalid_argument(fmt::format("segment {}.{} does not exist (any more)", name.id, name.generation));
  UniqueFd fd(above_stdio(
      [&] { return ::fcntl(is_offered ? offered->second.fd.get() : owned->fd.get(), F_DUPFD_CLOEXEC, 0); }));
  if (!fd) return system_error("hand out a segment", errno);
  return Export{.fd = std::move(fd), .bytes = is_offered ? offered->second.bytes : owned->mapping.bytes()};
}

std::unique_ptr<SegmentTable::Offered> SegmentTable::offer(Export descriptor) {
  const std::unique_lock lock(mutex_);
  const SegmentName name = new_name();
  offered_.emplace(name, std::move(descriptor));
  return std::make_unique<Offered>(*this, name);
}

void SegmentTable::take_back(SegmentName name) {
  const std::unique_lock lock(mutex_);
  offered_.erase(name);
}

bool SegmentTable::alive(SegmentName name) const {
  const std::shared_lock lock(mutex_);
  return named(name) != nullptr;
}

Result<void> SegmentTable::move_aside(const void* at) {
  const std::unique_lock lock(mutex_);
  Owned* const there = around(segments_, at, 1);
  if (there == nullptr || !there->fd) return {};
  Owned& owned = *there;
  const std::size_t bytes = owned.mapping.bytes();

  const auto ranges = data_ranges(owned.fd.get(), bytes);
  std::size_t used = 0;
  for (const auto& range : ranges) used += range.bytes;
  const auto copy = [&]() -> Result<UniqueFd> {
    TUTTI_TRY(check_room(used));
    auto made = TUTTI_TRY(sealed_memory(bytes));
    auto fresh = TUTTI_TRY(Mapping::shared(made.get(), bytes));
    prefer_node(fresh, owned.node);
    if (owned.touched) ask_for_huge_pages(fresh);
    for (const auto& range : ranges) {
      TUTTI_TRY(populate(made.get(), fresh, range.offset, range.bytes));
      std::memcpy(fresh.data() + range.offset, owned.mapping.data() + range.offset, range.bytes);
    }
    return made;
  };
  auto fd = copy();
  if (!fd) return std::move(fd).error().during("move a segment aside");
  constexpr int over = MAP_SHARED | MAP_FIXED;
  if (::mmap(owned.mapping.data(), bytes, PROT_READ | PROT_WRITE, over, fd->get(), 0) == MAP_FAILED)
    return system_error("map a segment's fresh pages over its old ones", errno);
  if (owned.touched) ask_for_huge_pages(owned.mapping);
  owned.fd = *std::move(fd);
  ++owned.name.generation;
  retired_.fetch_add(1, std::memory_order_release);
  return {};
}

Result<SharedMapping> SegmentCache::map(std::uint64_t process, SegmentName name, std::size_t bytes_needed,
                                        const Fetch& fetch) {
  const std::pair key(process, name);
  const auto too_short = [&](std::size_t bytes) {
    return remote_error(
        fmt::format("segment {}.{} has {} bytes, {} are needed", name.id, name.generation, bytes, bytes_needed));
  };
  {
    const std::lock_guard lock(mutex_);
    const auto known = mappings_.find(key);
    if (auto mapping = known != mappings_.end() ? known->second.lock() : nullptr) {
      if (mapping->bytes() < bytes_needed) return too_short(mapping->bytes());
      return mapping;
    }
  }

  auto fetched = TUTTI_TRY(fetch(process, name));
  const int has = ::fcntl(fetched.fd.get(), F_GET_SEALS);
  if (has < 0 || (has & F_SEAL_SHRINK) == 0)
    return remote_error(
        fmt::format("segment {}.{} is not sealed: its owner could shorten it", name.id, name.generation));
  struct stat status {};
  if (::fstat(fetched.fd.get(), &status) != 0) return system_error("look at a peer's segment", errno);
  const auto bytes = static_cast<std::size_t>(status.st_size);  // from the kernel, not from the peer
  if (bytes == 0 || bytes < bytes_needed) return too_short(bytes);
  SharedMapping mapping = std::make_shared<const Mapping>(TUTTI_TRY(Mapping::shared(fetched.fd.get(), bytes)));

  const std::lock_guard lock(mutex_);
  // Another thread may have mapped it first. A second mapping of the same memory would hide data races from race
  // detectors.
  if (auto first = mappings_[key].lock(); first && first->bytes() >= bytes_needed) return first;
  std::erase_if(mappings_, [](const auto& entry) { return entry.second.expired(); });
  mappings_[key] = mapping;
  return mapping;
}

Result<std::byte*> GrowingSegment::at_least(std::size_t bytes) {
  if (bytes_ >= bytes) return at_;
  if (at_ != nullptr) (void)table_.free(std::exchange(at_, nullptr));
  bytes_ = 0;
  auto memory = table_.allocate(bytes, /*touch=*/true, node_);
  if (!memory) return memory;
  bytes_ = bytes;
  return at_ = *memory;
}

}  // namespace tutti
