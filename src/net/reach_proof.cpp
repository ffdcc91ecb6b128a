#include "net/reach_proof.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/random.h"
#include "net/peer_address.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint64_t probe_magic = 0x3165'626f'7270'7474;   // "ttprobe1"
constexpr std::uint64_t answer_magic = 0x3172'6577'736e'6174;  // "tanswer1"
constexpr std::size_t nonce_bytes = 16;
constexpr std::size_t digest_bytes = sizeof(Digest);
constexpr std::int64_t try_ns = 2'000 * ms;  // per address, until the call gets through; TCP resends a loss after 1 s
constexpr std::int64_t answer_ns = 10'000 * ms;  // from getting through to the answer: a busy host is slow, not gone
constexpr std::int64_t host_ns = 10'000 * ms;    // replaces try_ns while none of the host's addresses has been reached
constexpr std::int64_t fresh_ns = 200 * ms;  // younger calls have just begun; older ones cost little but a descriptor
constexpr std::size_t calls_max = 512;       // limit of all calls
constexpr std::int64_t again_ns = 20 * ms;   // pause after the listener closed the connection
constexpr std::int64_t look_ns = 100 * ms;   // interval for checking whether calls got through
constexpr int tries_max = 50;
static_assert(Greeting::bytes <= ReachProbe::bytes);

std::string list_of(const ReachHost& host) {
  const auto texts = std::views::transform(host.addresses, [](const ReachAddress& address) { return address.at.host; });
  return host.addresses.empty() ? "none" : joined(texts, ", ");
}

}  // namespace

Result<Bytes> make_probe(const ConnectionKey& key, std::size_t from, int to, std::size_t address) {
  std::array<std::byte, nonce_bytes> nonce;
  TUTTI_TRY(fill_random(nonce));
  const Bytes told = serialized(probe_magic, key.communicator, to, static_cast<std::uint32_t>(from),
                                static_cast<std::uint32_t>(address), nonce);
  return serialized(told, TUTTI_TRY(hmac_of(key.secret, "probe", told)));
}

bool is_probe_answer(const Secret& secret, std::span<const std::byte> probe, std::span<const std::byte> answer) {
  ByteReader reader(answer);
  if (reader.number<std::uint64_t>() != answer_magic) return false;
  const auto mac = hmac_of(secret, "answer", probe);
  return mac && equal_in_constant_time(*mac, answer.last(digest_bytes));
}

std::optional<ReachProbe> ReachProbe::read(std::span<const std::byte> begun) {
  ByteReader reader(begun);
  if (reader.number<std::uint64_t>() != probe_magic) return std::nullopt;
  ReachProbe probe;
  reader.numbers(probe.communicator, probe.rank);
  return reader.ok() ? std::optional(probe) : std::nullopt;
}

Result<Bytes> answer_probe(const ConnectionKey& key, std::span<const std::byte> probe) {
  if (probe.size() != ReachProbe::bytes) return remote_error("a probe of the wrong length");
  auto mac = TUTTI_TRY(hmac_of(key.secret, "probe", probe.first(probe.size() - digest_bytes)));
  if (!equal_in_constant_time(mac, probe.last(digest_bytes)))
    return remote_error("a probe made with a different secret");
  return serialized(answer_magic, TUTTI_TRY(hmac_of(key.secret, "answer", probe)));
}

ReachMap::ReachMap(std::span<const ReachHost> hosts) {
  for (const auto& host : hosts) paths_.emplace_back(host.addresses.size());
}

std::vector<std::byte> ReachMap::encode() const {
  std::vector<std::byte> bytes;
  std::size_t bit = 0;
  for (const auto& host : paths_)
    for (const Path& path : host)
      for (const bool is : {path.reached, path.wide}) {
        if (bit % 8 == 0) bytes.push_back(std::byte{0});
        if (is) bytes.back() |= std::byte{1} << (bit % 8);
        ++bit;
      }
  return bytes;
}

Result<ReachMap> ReachMap::decode(std::span<const std::byte> bytes, std::span<const ReachHost> hosts) {
  ReachMap map(hosts);
  if (map.encode().size() != bytes.size())
    return remote_error(fmt::format("a map of {} bytes, of other hosts", bytes.size()));
  std::size_t bit = 0;
  for (auto& host : map.paths_)
    for (Path& path : host)
      for (bool* is : {&path.reached, &path.wide}) {
        *is = (bytes[bit / 8] & (std::byte{1} << (bit % 8))) != std::byte{0};
        ++bit;
      }
  return map;
}

ReachProof::ReachProof(System& system, const ConnectionKey& key, std::size_t self, std::vector<ReachHost> hosts,
                       std::size_t at_once)
    : system_(system), key_(key), self_(self), hosts_(std::move(hosts)), at_once_(at_once), map_(hosts_) {
  for (std::size_t address = 0; address < hosts_[self_].addresses.size(); ++address) map_.set(self_, address);
  for (const auto& host : hosts_) rates_.emplace_back(host.addresses.size(), 0);
  // Every host begins with a different one, so that they do not all call the same host first.
  for (std::size_t i = 1; i < hosts_.size(); ++i) {
    const std::size_t host = (self_ + i) % hosts_.size();
    for (std::size_t address = 0; address < hosts_[host].addresses.size(); ++address)
      to_call_.push_back({host, address});
  }
}

void ReachProof::fail(const AddressIndex& place, const std::string& reason) {
  const ReachHost& host = hosts_[place.host];
  const SocketAddress& at = host.addresses[place.address].at;
  why_.push_back(fmt::format("{} at {} port {}: {}", host.name, at.host, at.port, reason));
}

/// False: the call has ended.
bool ReachProof::begin(Call& call) {
  const ReachAddress& to = hosts_[call.place.host].addresses[call.place.address];
  auto probe = make_probe(key_, self_, to.rank, call.place.address);
  auto socket = probe ? system_.connect(to.at) : Result<Socket>(probe.error());
  if (!socket && socket.error().lacks_descriptor()) lacked_ = socket.error();
  if (!socket) return cut_off(call, socket.error());
  call.wire = Wire(system_, *std::move(socket));
  call.probe = *std::move(probe);
  call.wire.queue(call.probe);
  call.tried_ns = system_.now_ns();
  if (call.first_ns == 0) call.first_ns = call.tried_ns;
  call.begin_ns = 0;
  return true;
}

/// False: the call has ended. A listener that is too busy closes connections; a refused connection means that no tutti
/// host is there.
bool ReachProof::cut_off(Call& call, const Error& error) {
  if (error.code == Code::remote || error.sys_errno == ECONNRESET) {
    if (++call.tries < tries_max) {
      call.wire = Wire(system_, Socket());
      call.begin_ns = system_.now_ns() + again_ns;
      return true;
    }
  }
  fail(call.place, error.text());
  return false;
}

/// Waits for many dead addresses at the same time, not for 64 after another 64.
bool ReachProof::may_call() const {
  const std::int64_t old_ns = system_.now_ns() - fresh_ns;
  const auto fresh = std::ranges::count_if(calls_, [old_ns](const Call& call) { return call.tried_ns > old_ns; });
  return !to_call_.empty() && calls_.size() < calls_max && static_cast<std::size_t>(fresh) < at_once_;
}

void ReachProof::call_some() {
  while (may_call()) {
    Call call{.place = to_call_.front(), .wire = Wire(system_, Socket()), .probe = {}};
    to_call_.pop_front();
    if (begin(call)) calls_.push_back(std::move(call));
  }
}

/// A call that got through gets as much time as a busy host needs.
bool ReachProof::is_late(const Call& call) const {
  const std::int64_t tried_ns = system_.now_ns() - call.tried_ns;
  if (tried_ns < try_ns) return false;
  return tried_ns >= answer_ns || !system_.peer_address(call.wire.socket());
}

/// False: the call has ended, with or without success.
bool ReachProof::serve(Call& call) {
  if (call.begin_ns != 0) return system_.now_ns() < call.begin_ns || begin(call);
  const auto sent = call.wire.flush();
  auto answer = call.wire.take(probe_answer_bytes);
  // The answer may have arrived even if nothing can be sent any more.
  if (!answer) return cut_off(call, sent ? answer.error() : sent.error());
  if (*answer) {
    const auto& [host, address] = call.place;
    if (is_probe_answer(key_.secret, call.probe, **answer)) {
      map_.set(host, address);
      rates_[host][address] = rate_of(call);
    } else {
      fail(call.place, "another process has this address and port");
    }
    return false;
  }
  if (!sent) return cut_off(call, sent.error());
  if (!is_late(call)) return true;
  // If there is no other path to the host, one more try is worth its time.
  const std::int64_t waited_ns = system_.now_ns() - call.first_ns;
  if (!map_.reached(call.place.host) && waited_ns < host_ns) return begin(call);
  fail(call.place, fmt::format("no answer for {} ms", waited_ns / ms));
  return false;
}

/// The rate of the slower of the call's two interfaces, as far as known.
int ReachProof::rate_of(const Call& call) {
  const int there = hosts_[call.place.host].addresses[call.place.address].mbps;
  const auto own = system_.address(call.wire.socket());
  if (!own) return there;
  const auto& mine = hosts_[self_].addresses;
  const auto here = std::ranges::find(mine, own->host, [](const ReachAddress& address) { return address.at.host; });
  if (here == mine.end() || here->mbps == 0) return there;
  return there == 0 ? here->mbps : std::min(there, here->mbps);
}

void ReachProof::find_wide() {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    int best = 0;
    for (const int rate : rates_[host]) best = std::max(best, rate);
    for (std::size_t address = 0; address < rates_[host].size(); ++address)
      if (host != self_ && map_.reached(host, address) && comparable(rates_[host][address], best))
        map_.set_wide(host, address);
  }
}

bool ReachProof::advance() {
  call_some();
  std::erase_if(calls_, [this](Call& call) { return !serve(call); });
  call_some();
  if (!calls_.empty() || !to_call_.empty()) return false;
  find_wide();
  return true;
}

std::int64_t ReachProof::poll_set(std::vector<PollItem>& items) const {
  const std::int64_t now = system_.now_ns();
  if (may_call()) return now;
  std::int64_t wake = now + (to_call_.empty() ? 3'600'000 * ms : look_ns);
  for (const auto& call : calls_) {
    const std::int64_t late_ns = call.tried_ns + try_ns;
    wake = std::min(wake, call.begin_ns != 0 ? call.begin_ns : std::max(late_ns, now + look_ns));
    if (call.begin_ns == 0) items.push_back(call.wire.interest());
  }
  return wake;
}

Result<std::vector<std::vector<std::size_t>>> usable_addresses(std::span<const ReachHost> hosts,
                                                               std::span<const ReachMap> maps, std::size_t self) {
  if (maps.size() != hosts.size()) return remote_error(fmt::format("{} maps of {} hosts", maps.size(), hosts.size()));
  std::vector<std::vector<std::size_t>> usable(hosts.size());
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    std::vector<std::size_t> by_self;
    for (std::size_t address = 0; address < hosts[host].addresses.size(); ++address) {
      const auto reaches = [&](const ReachMap& map) { return map.reached(host, address); };
      if (std::ranges::all_of(maps, reaches)) usable[host].push_back(address);
      if (reaches(maps[self])) by_self.push_back(address);
    }
    if (!usable[host].empty()) continue;
    const auto apart = std::ranges::find_if(maps, [host](const ReachMap& map) { return !map.reached(host); });
    if (apart != maps.end()) {
      const ReachHost& from = hosts[static_cast<std::size_t>(apart - maps.begin())];
      return Error{.code = Code::system,
                   .what = fmt::format("{} cannot reach {} at {}; its own addresses: {} (TUTTI_SOCKET_IFNAME says "
                                       "which interfaces to use)",
                                       from.name, hosts[host].name, list_of(hosts[host]), list_of(from))};
    }
    usable[host] = std::move(by_self);
  }
  return usable;
}

}  // namespace tutti
