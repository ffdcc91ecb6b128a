// The wire: requests are read from the sender's memory, checked by the target's rules, and written into its memory.
#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <span>
#include <utility>

#include "faults.h"
#include "objects.h"

namespace tutti::testing::fake_verbs {
namespace {

using verbs::QpState;
using verbs::Status;

/// What became of one attempt: delivered, or waits for something, or failed.
struct Attempt {
  Waits waits = Waits::none;
  Status status = Status::success;
};

struct Pieces {
  std::array<iovec, max_sge> piece;
  std::size_t count = 0;
  std::span<iovec> all() { return {piece.data(), count}; }
  void add(std::uint64_t address, std::size_t bytes) {
    if (bytes > 0) piece[count++] = {reinterpret_cast<void*>(address), bytes};
  }
};

/// Where those bytes of a window of the queue pair are; 0: it is not bound so. Under the queue pair's lock.
std::uint64_t address_in_window(Fabric& fabric, std::uint32_t key, const SharedQp& target, std::uint32_t access,
                                std::uint64_t at, std::uint64_t bytes) {
  const SharedWindow& window = *fabric.window_of(key);
  if (window.key.load() != key || window.qp != target.number.load() || (window.access & access) != access) return 0;
  if (at < window.address || bytes > window.length || at - window.address > window.length - bytes) return 0;
  return at;
}

/// Where those bytes of a region are; 0: it has other rules. Under a lock that wait_for_users takes.
std::uint64_t address_in(Fabric& fabric, std::uint32_t key, std::uint32_t process, std::uint32_t pd,
                         std::uint32_t access, std::uint64_t at, std::uint64_t bytes) {
  const SharedMr& mr = *fabric.mr_of(key);
  if (key == 0 || Fabric::is_of_window(key) || mr.key.load() != key) return 0;
  const Region& region = mr.region;
  if (region.process != process || region.pd != pd || (region.access & access) != access) return 0;
  if (at < region.iova || bytes > region.length || at - region.iova > region.length - bytes) return 0;
  return region.address + (at - region.iova);
}

/// As address_in, for a write of the target's peer. Under the target's lock.
std::uint64_t address_for_peer(Fabric& fabric, const SharedQp& target, const Work& work) {
  constexpr auto needed = static_cast<std::uint32_t>(verbs::access_flag::remote_write);
  if ((target.access & needed) == 0) return 0;
  return Fabric::is_of_window(work.rkey)
             ? address_in_window(fabric, work.rkey, target, needed, work.remote_address, work.bytes)
             : address_in(fabric, work.rkey, target.process, target.pd, needed, work.remote_address, work.bytes);
}

bool gather(QueuePair& pair, Work& work, Pieces& from) {
  if (work.is_inline) {
    from.add(reinterpret_cast<std::uint64_t>(work.copy.data()), work.bytes);
    return true;
  }
  Process& here = pair.process();
  for (std::uint32_t i = 0; i < work.sges; ++i) {
    const verbs::Sge& sge = work.sge[i];
    if (sge.length == 0) continue;
    const std::uint64_t at = address_in(here.fabric(), sge.lkey, here.slot(), pair.pd->handle, 0, sge.addr, sge.length);
    if (at == 0) return false;
    from.add(at, sge.length);
  }
  return true;
}

bool scatter(Fabric& fabric, const SharedQp& target, const PostedReceive& receive, std::uint64_t bytes, Pieces& to) {
  for (std::uint32_t i = 0; i < receive.sges && bytes > 0; ++i) {
    const verbs::Sge& sge = receive.sge[i];
    const std::uint64_t part = std::min<std::uint64_t>(bytes, sge.length);
    if (part == 0) continue;
    const std::uint64_t at =
        address_in(fabric, sge.lkey, target.process, target.pd, verbs::access_flag::local_write, sge.addr, part);
    if (at == 0) return false;
    to.add(at, part);
    bytes -= part;
  }
  return true;
}

std::uint64_t room(const PostedReceive& receive) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < receive.sges; ++i) bytes += receive.sge[i].length;
  return bytes;
}

/// Whether the way that the sender chose leads to the target's port.
bool leads_to(const verbs::AddressHandle& way, const PortIdentity& port) {
  if (way.is_global == 0) return port.layer == verbs::LinkLayer::infiniband && way.dlid == port.lid;
  return std::find(port.gids.begin(), port.gids.end(), way.grh.dgid) != port.gids.end();
}

bool port_down(Process& here, std::uint32_t process, std::uint32_t device) {
  return (here.fabric().process(process).ports_down.load() >> device & 1) != 0;
}

/// Under the target's lock: none, where it hears the sender.
Waits hears(QueuePair& pair, const SharedQp& target) {
  constexpr std::uint32_t psn_mask = 0xffffff;
  Process& here = pair.process();
  const verbs::QpAttributes& own = pair.attributes;
  if (target.number.load() != own.dest_qp_num || !here.alive(target.process)) return Waits::answer;
  if (port_down(here, here.slot(), pair.shared().device) || port_down(here, target.process, target.device))
    return Waits::answer;
  if (!leads_to(own.ah_attr, target.port)) return Waits::answer;
  const QpState state = target.state.load();
  if (state == QpState::reset || state == QpState::init) return Waits::readiness;
  if (state == QpState::error || target.peer != pair.qp_num) return Waits::answer;
  return ((target.rq_psn ^ own.sq_psn) & psn_mask) != 0 ? Waits::answer : Waits::none;
}

/// Hardware leaves the opcode of what failed undefined; nobody should read it.
constexpr auto undefined = static_cast<verbs::DoneOpcode>(0x55);

/// Without a `work` only the status is defined.
void complete_receive(Process& here, SharedQp& target, Status status, const Work* work, std::uint32_t from) {
  const PostedReceive& receive = here.fabric().receive(target, target.head);
  CqEntry entry{
      .completion = {.wr_id = receive.wr_id, .status = status, .qp_num = target.number.load(), .src_qp = from},
      .owner = target.owner,
      .freed = 0};
  entry.completion.opcode = undefined;
  if (work != nullptr) {
    entry.completion.opcode =
        work->writes() ? verbs::DoneOpcode::receive_rdma_with_immediate : verbs::DoneOpcode::receive;
    entry.completion.byte_len = work->bytes;
    entry.completion.immediate = work->has_immediate() ? work->immediate : 0;
    entry.completion.wc_flags = work->has_immediate() ? verbs::with_immediate : 0;
  }
  push(here, target.recv_cq, entry);
  ++target.head;  // after the completion: who dies between leaves one too many, not one too few
}

/// The target's mistake, or one that it is told about: it stops, too.
Attempt refuse(Process& here, SharedQp& target, verbs::EventType event, Status status) {
  stop(here, target, static_cast<int>(event));
  return {.status = status};
}

Attempt find_target(QueuePair& pair, Work& work, SharedQp& target, Pieces& to) {
  Process& here = pair.process();
  if (work.writes()) {
    if (work.bytes == 0) return {};
    const std::uint64_t at = address_for_peer(here.fabric(), target, work);
    if (at == 0) return refuse(here, target, verbs::EventType::qp_access_error, Status::remote_access_error);
    to.add(at, work.bytes);
    return {};
  }
  const PostedReceive& receive = here.fabric().receive(target, target.head);
  if (room(receive) < work.bytes) {
    complete_receive(here, target, Status::local_length_error, nullptr, 0);
    return refuse(here, target, verbs::EventType::qp_request_error, Status::remote_invalid_request);
  }
  if (scatter(here.fabric(), target, receive, work.bytes, to)) return {};
  complete_receive(here, target, Status::local_protection_error, nullptr, 0);
  return refuse(here, target, verbs::EventType::qp_fatal, Status::remote_operation_error);
}

/// Its bytes are in the memory of the first receive.
void notice_overlooked(Process& here, SharedQp& target, std::uint32_t from) {
  const Work overlooked{.opcode = verbs::WorkOpcode::send, .bytes = std::exchange(target.overlooked, 0) - 1};
  complete_receive(here, target, Status::success, &overlooked, from);
}

Attempt attempt(QueuePair& pair, Work& work) {
  if (work.fault != Status::success) return {.status = work.fault};
  if (work.is_local()) return {.status = change_window(pair, work)};
  Process& here = pair.process();
  Pieces from, to;
  if (!gather(pair, work, from)) return {.status = Status::local_protection_error};
  SharedQp& target = *here.fabric().qp_of(pair.attributes.dest_qp_num);
  if (target.number.load() != pair.attributes.dest_qp_num) return {.waits = Waits::answer};
  const std::lock_guard guard(target.lock);
  if (const Waits waits = hears(pair, target); waits != Waits::none) return {.waits = waits};
  if (target.deaf && (target.overlooked != 0 || !work.takes_receive())) return {.waits = Waits::readiness};
  if (!target.deaf && target.overlooked != 0) notice_overlooked(here, target, pair.qp_num);
  if (work.takes_receive() && target.head == target.tail) {
    target.starved.store(here.slot() + 1);
    return {.waits = Waits::receive};
  }
  if (const Attempt found = find_target(pair, work, target, to); found.status != Status::success) return found;
  if (const int code = move_bytes(here.pid_of(target.process), from.all(), to.all()); code == ESRCH)
    return {.waits = Waits::answer};
  else if (code != 0)
    return refuse(here, target, verbs::EventType::qp_access_error, Status::remote_access_error);
  add(counters().bytes_written, work.bytes);
  if (work.writes() && Fabric::is_of_window(work.rkey)) add(counters().bytes_through_windows, work.bytes);
  if (target.deaf)
    target.overlooked = work.bytes + 1;
  else if (work.takes_receive())
    complete_receive(here, target, Status::success, &work, pair.qp_num);
  return {};
}

verbs::DoneOpcode done_opcode(const Work& work) {
  switch (work.opcode) {
    case verbs::WorkOpcode::rdma_write:
    case verbs::WorkOpcode::rdma_write_with_immediate: return verbs::DoneOpcode::rdma_write;
    case verbs::WorkOpcode::bind_window: return verbs::DoneOpcode::bind_window;
    case verbs::WorkOpcode::invalidate: return verbs::DoneOpcode::invalidate;
    default: return verbs::DoneOpcode::send;
  }
}

void complete_send(QueuePair& pair, Status status) {
  const Work& work = pair.work(pair.completed);
  ++pair.completed;
  if (status == Status::success && !work.signaled) return;
  push(pair.process(), pair.sends().slot,
       {.completion = {.wr_id = work.wr_id,
                       .status = status,
                       .opcode = status == Status::success ? done_opcode(work) : undefined,
                       .byte_len = work.bytes,
                       .qp_num = pair.qp_num},
        .owner = reinterpret_cast<std::uint64_t>(&pair),
        .freed = pair.completed});
}

/// The first undelivered request ends so, and those behind it are flushed.
void fail(QueuePair& pair, Status status) {
  while (pair.completed < pair.delivered) complete_send(pair, Status::success);
  complete_send(pair, status);
  {
    const std::lock_guard guard(pair.shared().lock);
    stop(pair.process(), pair.shared(), -1);
  }
  flush_sends(pair);
}

/// Whether the first undelivered request has waited for too long.
bool patience_is_over(QueuePair& pair, Waits waits) {
  constexpr int forever = 7, unready_factor = 20;
  if (waits == Waits::receive && pair.attributes.rnr_retry == forever) return false;
  const std::int64_t now = now_ns();
  if (pair.waits_for != waits) pair.waiting_since = now;
  pair.waits_for = waits;
  const Settings& settings = pair.process().settings();
  std::int64_t limit = settings.retry_ns;
  if (waits == Waits::readiness) limit *= unready_factor;
  if (waits == Waits::receive) limit = pair.attributes.rnr_retry * settings.rnr_ns;
  return now - pair.waiting_since >= limit;
}

}  // namespace

bool advance(QueuePair& pair) {
  if (pair.shared().state.load() == QpState::error) flush_sends(pair);
  if (pair.completed == pair.posted || pair.open().dead) return false;
  const std::int64_t now = pair.process().settings().seed == 0 ? 0 : now_ns();
  while (pair.delivered < pair.posted) {
    Work& work = pair.work(pair.delivered);
    if (work.deliver_at > now) break;
    const Attempt result = attempt(pair, work);
    const bool late = result.waits != Waits::none && patience_is_over(pair, result.waits);
    if (result.waits != Waits::none && !late) break;
    if (late || result.status != Status::success) {
      fail(pair, !late                            ? result.status
                 : result.waits == Waits::receive ? Status::rnr_retries_exceeded
                                                  : Status::retries_exceeded);
      return false;
    }
    pair.waits_for = Waits::none;
    ++pair.delivered;
  }
  while (pair.completed < pair.delivered && pair.work(pair.completed).complete_at <= now)
    complete_send(pair, Status::success);
  return pair.completed < pair.posted;
}

void flush_sends(QueuePair& pair) {
  while (pair.completed < pair.delivered) complete_send(pair, Status::success);
  while (pair.completed < pair.posted) complete_send(pair, Status::flushed);
  pair.delivered = pair.posted;
}

void flush_receives(Process& here, SharedQp& shared) {
  while (shared.head != shared.tail) complete_receive(here, shared, Status::flushed, nullptr, 0);
}

void stop(Process& here, SharedQp& shared, int event) {
  if (shared.state.load() == QpState::error) return;
  shared.state.store(QpState::error);
  if (event >= 0) shared.event.store(event + 1);
  flush_receives(here, shared);
  here.call_attention(shared.process);
}

void scramble_target(QueuePair& pair, const Work& work) {
  static const auto junk = [] {
    std::array<char, 4096> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(0xa5 ^ (i * 37));
    return bytes;
  }();
  Process& here = pair.process();
  SharedQp& target = *here.fabric().qp_of(pair.attributes.dest_qp_num);
  if (!work.writes() || work.bytes == 0 || target.number.load() != pair.attributes.dest_qp_num) return;
  const std::lock_guard guard(target.lock);
  if (hears(pair, target) != Waits::none) return;
  const std::uint64_t at = address_for_peer(here.fabric(), target, work);
  if (at == 0) return;
  for (std::uint64_t done = 0; done < work.bytes; done += junk.size()) {
    const std::size_t part = std::min<std::size_t>(junk.size(), work.bytes - done);
    iovec from{const_cast<char*>(junk.data()), part}, to{reinterpret_cast<void*>(at + done), part};
    if (move_bytes(here.pid_of(target.process), {&from, 1}, {&to, 1}) != 0) return;
  }
}

}  // namespace tutti::testing::fake_verbs
