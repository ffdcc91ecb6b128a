#include "comm/reach_proof.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/random.h"
#include "comm/digest.h"
#include "comm/wire.h"

namespace tutti {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint64_t probe_magic = 0x3165'626f'7270'7474;   // "ttprobe1"
constexpr std::uint64_t answer_magic = 0x3172'6577'736e'6174;  // "tanswer1"
constexpr std::uint32_t version = 1;
constexpr std::size_t nonce_bytes = 16;
constexpr std::size_t digest_bytes = sizeof(Digest);
constexpr std::size_t probe_bytes = 8 + 4 * 4 + nonce_bytes + digest_bytes;
constexpr std::size_t answer_bytes = 8 + digest_bytes;
constexpr int accepts_per_turn = 64;
constexpr std::int64_t again_ns = 20 * ms;  // after being cut off
constexpr int tries_max = 50;

/// With the use in it, so that a probe is no answer.
Result<Digest> code(const Secret& secret, std::string_view use, std::span<const std::byte> bytes) {
  ByteWriter writer;
  writer.text(use);
  writer.raw(bytes);
  return hmac_sha256(secret, writer.bytes());
}

Result<Bytes> make_probe(const Secret& secret, std::size_t from, std::size_t to, std::size_t address) {
  std::array<std::byte, nonce_bytes> nonce;
  if (auto done = fill_random(nonce); !done) return std::move(done).error();
  ByteWriter writer;
  writer.number(probe_magic);
  writer.number(version);
  for (const std::size_t number : {from, to, address}) writer.number(static_cast<std::uint32_t>(number));
  writer.raw(nonce);
  auto mac = code(secret, "probe", writer.bytes());
  if (!mac) return std::move(mac).error();
  writer.raw(*mac);
  return std::move(writer).take();
}

/// The answer to a probe that is for us and made with our secret. Errors: remote, system.
Result<Bytes> answer_to(const Secret& secret, std::size_t self, std::span<const std::byte> probe) {
  const auto refused = [] { return Error{.code = Code::remote, .what = "not a probe for this host"}; };
  ByteReader reader(probe);
  const bool ours = reader.number<std::uint64_t>() == probe_magic && reader.number<std::uint32_t>() == version;
  reader.number<std::uint32_t>();
  if (!ours || reader.number<std::uint32_t>() != self) return refused();
  auto mac = code(secret, "probe", probe.first(probe.size() - digest_bytes));
  if (!mac) return std::move(mac).error();
  if (!equal_in_constant_time(*mac, probe.last(digest_bytes))) return refused();
  auto answer = code(secret, "answer", probe);
  if (!answer) return std::move(answer).error();
  ByteWriter writer;
  writer.number(answer_magic);
  writer.raw(*answer);
  return std::move(writer).take();
}

bool is_answer(const Secret& secret, std::span<const std::byte> probe, std::span<const std::byte> answer) {
  ByteReader reader(answer);
  if (reader.number<std::uint64_t>() != answer_magic) return false;
  const auto mac = code(secret, "answer", probe);
  return mac && equal_in_constant_time(*mac, answer.last(digest_bytes));
}

}  // namespace

ReachMap::ReachMap(std::span<const HostAddresses> hosts) {
  for (const auto& addresses : hosts) reached_.emplace_back(addresses.size(), false);
}

std::vector<std::byte> ReachMap::encode() const {
  std::vector<std::byte> bytes;
  std::size_t bit = 0;
  for (const auto& host : reached_)
    for (const bool is : host) {
      if (bit % 8 == 0) bytes.push_back(std::byte{0});
      if (is) bytes.back() |= std::byte{1} << (bit % 8);
      ++bit;
    }
  return bytes;
}

Result<ReachMap> ReachMap::decode(std::span<const std::byte> bytes, std::span<const HostAddresses> hosts) {
  ReachMap map(hosts);
  if (map.encode().size() != bytes.size())
    return Error{.code = Code::remote, .what = fmt::format("a map of {} bytes, of other hosts", bytes.size())};
  std::size_t bit = 0;
  for (auto& host : map.reached_)
    for (std::size_t address = 0; address < host.size(); ++address, ++bit)
      host[address] = (bytes[bit / 8] & (std::byte{1} << (bit % 8))) != std::byte{0};
  return map;
}

struct ReachDoor::Caller {
  Wire wire;
  std::int64_t deadline_ns;
  bool answered = false;
};

ReachDoor::ReachDoor(System& system, const Secret& secret, std::size_t self, std::vector<Socket> listeners,
                     const ReachLimits& limits)
    : system_(system), secret_(secret), self_(self), listeners_(std::move(listeners)), limits_(limits) {}

ReachDoor::~ReachDoor() {
  wipe(secret_);
}

void ReachDoor::accept_some() {
  for (auto& listener : listeners_)
    for (int i = 0; i < accepts_per_turn; ++i) {
      auto socket = system_.accept(listener);
      if (!socket || !*socket) break;  // without descriptors: callers wait outside until others have gone
      if (callers_.size() >= limits_.at_once && !serve_all()) callers_.erase(callers_.begin());
      callers_.push_back(
          {.wire = Wire(system_, *std::move(socket)), .deadline_ns = system_.now_ns() + limits_.pending_ms * ms});
    }
}

/// False: it is to be dropped.
bool ReachDoor::serve(Caller& caller) {
  auto probe = caller.wire.take(probe_bytes);
  if (!probe) return false;
  if (*probe) {
    auto answer = answer_to(secret_, self_, **probe);
    if (!answer) return false;
    caller.wire.queue(*std::move(answer));
    caller.answered = true;
  }
  const auto sent = caller.wire.flush();
  return sent && !(caller.answered && *sent) && system_.now_ns() < caller.deadline_ns;
}

/// True: some of them are gone.
bool ReachDoor::serve_all() {
  return std::erase_if(callers_, [this](Caller& caller) { return !serve(caller); }) > 0;
}

bool ReachDoor::advance() {
  accept_some();
  (void)serve_all();
  return true;
}

std::int64_t ReachDoor::interests(std::vector<PollItem>& items) {
  std::int64_t wake = system_.now_ns() + 3'600'000 * ms;
  for (const auto& listener : listeners_) items.push_back({.handle = listener.handle(), .want_read = true});
  for (const auto& caller : callers_) {
    items.push_back(caller.wire.interest());
    wake = std::min(wake, caller.deadline_ns);
  }
  return wake;
}

struct ReachProof::Call {
  Place place;
  Wire wire;
  Bytes probe;
  std::int64_t deadline_ns = 0;
  std::int64_t begin_ns = 0;  ///< when to call again; 0: it is under way
  int tries = 0;
};

ReachProof::ReachProof(System& system, const Secret& secret, std::size_t self, std::vector<HostAddresses> hosts,
                       const ReachLimits& limits)
    : system_(system), secret_(secret), self_(self), hosts_(std::move(hosts)), limits_(limits), map_(hosts_) {
  for (std::size_t address = 0; address < hosts_[self_].size(); ++address) map_.set(self_, address);
  // Every host begins with another one, so that not all of them call the first together.
  for (std::size_t i = 1; i < hosts_.size(); ++i) {
    const std::size_t host = (self_ + i) % hosts_.size();
    for (std::size_t address = 0; address < hosts_[host].size(); ++address) to_call_.push_back({host, address});
  }
}

ReachProof::~ReachProof() {
  wipe(secret_);
}

void ReachProof::fail(const Place& place, const std::string& reason) {
  const auto& at = hosts_[place.host][place.address];
  why_.push_back(fmt::format("host {} at {} port {}: {}", place.host, at.host, at.port, reason));
}

/// False: it has ended.
bool ReachProof::begin(Call& call) {
  auto probe = make_probe(secret_, self_, call.place.host, call.place.address);
  auto socket = probe ? system_.connect(hosts_[call.place.host][call.place.address]) : Result<Socket>(probe.error());
  if (!socket) return cut_off(call, socket.error());
  call.wire = Wire(system_, *std::move(socket));
  call.probe = *std::move(probe);
  call.wire.queue(call.probe);
  call.deadline_ns = system_.now_ns() + limits_.try_ms * ms;
  call.begin_ns = 0;
  return true;
}

/// False: it has ended. A door that is too busy cuts callers off; where nobody listens there is no door.
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

void ReachProof::call_some() {
  while (!to_call_.empty() && calls_.size() < limits_.at_once) {
    Call call{.place = to_call_.front(), .wire = Wire(system_, Socket()), .probe = {}};
    to_call_.pop_front();
    if (begin(call)) calls_.push_back(std::move(call));
  }
}

/// False: it has ended, one way or the other.
bool ReachProof::serve(Call& call) {
  if (call.begin_ns != 0) return system_.now_ns() < call.begin_ns || begin(call);
  const auto sent = call.wire.flush();
  auto answer = call.wire.take(answer_bytes);
  // The answer may be here though nothing can be sent any more.
  if (!answer) return cut_off(call, sent ? answer.error() : sent.error());
  if (*answer) {
    if (is_answer(secret_, call.probe, **answer))
      map_.set(call.place.host, call.place.address);
    else
      fail(call.place, "another process has this address and port");
    return false;
  }
  if (!sent) return cut_off(call, sent.error());
  if (system_.now_ns() < call.deadline_ns) return true;
  fail(call.place, fmt::format("no answer for {} ms", limits_.try_ms));
  return false;
}

bool ReachProof::advance() {
  call_some();
  std::erase_if(calls_, [this](Call& call) { return !serve(call); });
  call_some();
  return calls_.empty() && to_call_.empty();
}

std::int64_t ReachProof::interests(std::vector<PollItem>& items) const {
  const bool at_once = calls_.size() < limits_.at_once && !to_call_.empty();
  std::int64_t wake = at_once ? system_.now_ns() : system_.now_ns() + 3'600'000 * ms;
  for (const auto& call : calls_) {
    wake = std::min(wake, call.begin_ns != 0 ? call.begin_ns : call.deadline_ns);
    if (call.begin_ns == 0) items.push_back(call.wire.interest());
  }
  return wake;
}

Result<std::vector<std::vector<std::size_t>>> proven_addresses(std::span<const HostAddresses> hosts,
                                                               std::span<const ReachMap> maps) {
  if (maps.size() != hosts.size())
    return Error{.code = Code::remote, .what = fmt::format("{} maps of {} hosts", maps.size(), hosts.size())};
  std::vector<std::vector<std::size_t>> proven(hosts.size());
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    std::string missed;
    for (std::size_t address = 0; address < hosts[host].size(); ++address) {
      const auto not_by = std::ranges::find_if(maps, [&](const ReachMap& map) { return !map.reached(host, address); });
      if (not_by == maps.end())
        proven[host].push_back(address);
      else
        missed += fmt::format("; {} not by host {}", hosts[host][address].host, not_by - maps.begin());
    }
    if (proven[host].empty() && hosts.size() > 1)
      return Error{.code = Code::system,
                   .what = fmt::format("host {} has no address that all other hosts can reach{} (TUTTI_SOCKET_IFNAME "
                                       "says which interfaces to use)",
                                       host, missed)};
  }
  return proven;
}

}  // namespace tutti
