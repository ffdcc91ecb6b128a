#include "comm/join.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "comm/peer_watch.h"

namespace tutti {
namespace {

BootstrapLimits limits_of(const Process& process, const JoinOptions& options) {
  BootstrapLimits limits;
  limits.init_ms = options.init_limit_ms > 0 ? options.init_limit_ms : process.config.integer("TUTTI_INIT_TIMEOUT_MS");
  return limits;
}

Bootstrap::Who who_of(const Process& process, const JoinOptions& options) {
  // One order of reduction or several: a setting that ranks must share, though it comes from the call.
  const bool deterministic = options.deterministic;
  const auto& plan = process.plan_file;
  return {.rank = options.rank,
          .ranks = options.ranks,
          .settings = process.config.shared_hash() + deterministic + (plan ? plan->digest() : 0),
          .settings_text = process.config.shared_text() + (deterministic ? " deterministic=1" : "") +
                           (plan ? fmt::format(" TUTTI_PLAN_FILE=digest:{:016x}", plan->digest()) : ""),
          .version = library_version};
}

/// Whether `pid`'s memory can be read: tried on a word whose value is known. Never changes who may trace whom.
bool can_pull(int pid, std::uint64_t address) {
  std::uint64_t word = 0;
  const iovec here{&word, sizeof word};
  const iovec there{reinterpret_cast<void*>(address), sizeof word};
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof word && word == AreaHeader::magic_value;
}

}  // namespace

Join::Join(Process& process, JoinOptions options)
    : process_(process),
      options_(std::move(options)),
      bootstrap_(process.system, options_.id, who_of(process, options_), limits_of(process, options_)) {}

AreaShape Join::area_shape() const {
  AreaShape shape;
  shape.ranks = options_.ranks;
  shape.lanes = static_cast<int>(process_.config.integer("TUTTI_NCHANNELS")) + 1;
  shape.slot_bytes = static_cast<std::size_t>(process_.config.integer("TUTTI_BUFFSIZE"));
  return shape;
}

Result<Progress> Join::advance() {
  if (stage_ == Stage::begin) {
    if (auto begun = begin(); !begun) return std::move(begun).error();
    stage_ = Stage::greet;
    return Progress::moved;
  }
  auto complete = bootstrap_.advance();
  if (!complete) return std::move(complete).error();
  if (!*complete) return Progress::blocked;

  if (stage_ == Stage::greet) {
    Verdict verdict;
    if (auto connected = connect(); !connected) {
      verdict.code = static_cast<std::uint32_t>(connected.error().code);
      put_text(verdict.what, connected.error().text());
    }
    verdict.pulls = pulls_;
    if (options_.rank == 0 && verdict.code == 0)
      verdict.machine = process_.tune->machine(cpus_, process_.log).numbers();
    bootstrap_.exchange(to_blob(verdict));
    stage_ = Stage::agree;
    return Progress::moved;
  }
  if (auto agreement = agreed(); !agreement) return std::move(agreement).error();
  if (auto finished = finish(); !finished) return std::move(finished).error();
  stage_ = Stage::made;
  return Progress::done;
}

Result<void> Join::begin() {
  if (auto serving = process_.serve(); !serving) return serving;
  auto area = process_.make_area(area_shape());
  if (!area) return std::move(area).error();
  members_.area = *std::move(area);
  members_.rank = options_.rank;
  members_.ranks = options_.ranks;
  members_.deterministic = options_.deterministic;
  members_.name = options_.name.empty() ? "comm " + options_.id.fingerprint() : options_.name;

  Hello hello;
  hello.pid = ::getpid();
  hello.token = process_.token;
  hello.area = members_.area->name;
  hello.area_bytes = RankArea::bytes(area_shape());
  hello.area_address = reinterpret_cast<std::uint64_t>(members_.area->base);
  hello.key = process_.key;
  put_text(hello.host, process_.host);
  put_text(hello.boot_id, process_.boot_id);
  put_text(hello.fd_server, process_.fd_server_name());
  CPU_ZERO(&hello.cpus);
  if (::sched_getaffinity(0, sizeof hello.cpus, &hello.cpus) != 0) CPU_SET(0, &hello.cpus);
  bootstrap_.exchange(to_blob(hello));
  return {};
}

Result<void> Join::connect() {
  CPU_ZERO(&cpus_);
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    auto hello = read_hello(bootstrap_.gathered()[rank]);
    if (!hello) return std::move(hello).error().at_peer(rank);
    CPU_OR(&cpus_, &cpus_, &hello->cpus);
    if (auto connected = connect_to(*hello); !connected)
      return std::move(connected).error().during("reach a rank at the start").at_peer(rank);
  }
  members_.cores = CPU_COUNT(&cpus_);
  members_.fenced = options_.ranks > members_.cores;
  return {};
}

Result<void> Join::connect_to(const Hello& hello) {
  Peer peer;
  peer.token = hello.token;
  peer.pid = hello.pid;
  peer.host = get_text(hello.host);
  peer.fd_server = get_text(hello.fd_server);
  peer.key = hello.key;
  peer.area_name = hello.area;
  peer.same_process = hello.token == process_.token;
  const std::size_t bytes = RankArea::bytes(area_shape());
  if (hello.area_bytes != bytes)
    return Error{.code = Code::invalid_usage,
                 .what = fmt::format("its shared area has {} bytes, here it is {}", hello.area_bytes, bytes)};

  std::byte* base = nullptr;
  if (peer.same_process) {
    peer.thread_area = process_.find_area(hello.area.id);
    if (!peer.thread_area) return Error{.code = Code::remote, .what = "it left while the communicator was being made"};
    base = peer.thread_area->base;
  } else {
    if (get_text(hello.boot_id) != process_.boot_id)
      return Error{
          .code = Code::invalid_usage,
          .what = fmt::format("it runs on {}, this rank on {}: ranks must share one host", peer.host, process_.host)};
    int pid = 0;
    const auto fetch = [&](std::uint64_t, SegmentName name) -> Result<SegmentTable::Export> {
      constexpr std::int64_t limit_ns = 10'000'000'000;
      auto fetched = fetch_segment(peer.fd_server, peer.key, name, limit_ns, [] { return false; });
      if (!fetched) return std::move(fetched).error();
      pid = fetched->pid;
      return std::move(fetched->segment);
    };
    auto mapping = process_.cache.map(peer.token, hello.area, bytes, fetch);
    if (!mapping) return std::move(mapping).error();
    peer.mapped_area = *std::move(mapping);
    base = peer.mapped_area->data();
    if (pid != 0) peer.pid = pid;
    pulls_ = pulls_ && can_pull(peer.pid, hello.area_address);
  }
  peer.area = RankArea(base, area_shape());
  if (!peer.area.valid()) return Error{.code = Code::remote, .what = "its shared area is not one of tutti's"};
  members_.peers.push_back(std::move(peer));
  return {};
}

Result<void> Join::agreed() {
  members_.pulls = true;
  for (Rank rank = 0; rank < options_.ranks; ++rank) {
    auto verdict = read_verdict(bootstrap_.gathered()[rank]);
    if (!verdict) return std::move(verdict).error().at_peer(rank);
    if (verdict->code != 0)
      return Error{.code = static_cast<Code>(std::min(verdict->code, 8u)),
                   .what = fmt::format("rank {} could not join: {}", rank, get_text(verdict->what))};
    members_.pulls = members_.pulls && verdict->pulls != 0;
    if (rank > 0) continue;
    auto machine = Machine::of(verdict->machine);
    if (!machine) return std::move(machine).error().at_peer(rank);
    members_.machine = *machine;
  }
  return {};
}

Result<void> Join::finish() {
  made_ = std::make_shared<Communicator>(process_, std::move(members_));
  // All ranks have the same settings by now, and refuse alike.
  if (auto good = made_->check_algorithms(); !good) return good;
  made_->watch = std::make_shared<PeerWatch>(made_);
  if (auto watching = process_.service.add(made_->watch); !watching) return watching;
  const auto& m = made_->members();
  process_.log.info(
      LogTopic::init, made_->who(), "{} ranks ready, {}, {}", m.ranks,
      m.fenced ? "more ranks than cores" : "a core for each rank",
      m.pulls ? "other processes' memory can be copied from" : "other processes' memory cannot be copied from");
  return {};
}

}  // namespace tutti
