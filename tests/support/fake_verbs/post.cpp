// Posting: requests are checked and copied into the queues, and delivered at once where nothing is scrambled.
#include "post.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "faults.h"
#include "objects.h"

namespace tutti::testing::fake_verbs {
namespace {

using verbs::QpState;

bool known(verbs::WorkOpcode opcode) {
  return (opcode >= verbs::WorkOpcode::rdma_write && opcode <= verbs::WorkOpcode::send_with_immediate) ||
         opcode == verbs::WorkOpcode::bind_window || opcode == verbs::WorkOpcode::invalidate;
}

/// Half of the requests of a scrambled fabric are on time, most others a bit late, and some are late.
std::int64_t draw_delay(std::mt19937_64& random) {
  const auto kind = random() % 10;
  if (kind < 5) return 0;
  return static_cast<std::int64_t>(random() % (kind < 9 ? 20'000 : 500'000));
}

void scramble(QueuePair& pair, Work& work) {
  if (pair.process().settings().seed == 0) return;
  const std::int64_t now = now_ns();
  work.deliver_at = now + draw_delay(pair.random);
  work.complete_at = work.deliver_at + draw_delay(pair.random);
  if (work.deliver_at > now) scramble_target(pair, work);
}

void copy_inline(Work& work) {
  work.copy.resize(work.bytes);
  char* at = work.copy.data();
  for (std::uint32_t i = 0; i < work.sges; ++i) {
    const verbs::Sge& sge = work.sge[i];
    if (sge.length > 0) std::memcpy(at, reinterpret_cast<const void*>(sge.addr), sge.length);
    at += sge.length;
  }
}

/// Whether a message of the peer has taken a receive of this queue pair.
bool has_heard(const QueuePair& pair) {
  const std::lock_guard guard(pair.shared().lock);
  return pair.shared().head != 0;
}

/// What cannot be posted, and how the device says so.
int refusal(const QueuePair& pair, const verbs::SendWork& asked, std::uint64_t bytes) {
  const QpState state = pair.shared().state.load();
  if (state != QpState::ready_to_send && state != QpState::error) return EINVAL;
  if (pair.speaks_second && !has_heard(pair)) return -ENOTCONN;
  if (!known(asked.opcode) || asked.num_sge < 0 || static_cast<std::uint32_t>(asked.num_sge) > pair.cap.max_send_sge)
    return EINVAL;
  const bool immediate = asked.opcode == verbs::WorkOpcode::rdma_write_with_immediate ||
                         asked.opcode == verbs::WorkOpcode::send_with_immediate;
  if (immediate && pair.open().own_device.settings.link == Link::iwarp) return -EINVAL;
  if ((asked.send_flags & verbs::send_flag::inlined) != 0 && bytes > pair.cap.max_inline_data) return EINVAL;
  if (bytes > std::uint64_t{1} << 31) return EINVAL;
  return pair.posted - pair.freed.load() >= pair.works.size() ? ENOMEM : 0;
}

void count(const Work& work) {
  add(counters().requests);
  if (work.has_immediate()) add(counters().requests_with_immediate);
  if (work.signaled) add(counters().signaled);
  if (!work.is_inline) return;
  add(counters().requests_inline);
  add(counters().bytes_inline, work.bytes);
}

int accept(QueuePair& pair, const verbs::SendWork& asked) {
  if (const int fault = faults().hit(Point::post_send)) return fault;
  std::uint64_t bytes = 0;
  for (int i = 0; i < asked.num_sge; ++i) bytes += asked.sg_list[i].length;
  if (const int code = refusal(pair, asked, bytes)) return code;
  Work& work = pair.work(pair.posted);
  work.wr_id = asked.wr_id;
  work.opcode = asked.opcode;
  work.signaled = pair.signals_all || (asked.send_flags & verbs::send_flag::signaled) != 0;
  work.is_inline = (asked.send_flags & verbs::send_flag::inlined) != 0;
  work.immediate = asked.immediate;
  work.remote_address = asked.rdma.remote_addr;
  work.rkey = asked.rdma.rkey;
  work.bind = asked.bind;
  work.sges = static_cast<std::uint32_t>(asked.num_sge);
  std::copy_n(asked.sg_list, asked.num_sge, work.sge.begin());
  work.bytes = static_cast<std::uint32_t>(bytes);
  work.deliver_at = work.complete_at = 0;
  work.fault = static_cast<verbs::Status>(faults().hit(Point::status));
  if (work.is_inline) copy_inline(work);
  count(work);
  scramble(pair, work);
  ++pair.posted;
  return 0;
}

/// Before any lock, as the event is told to all who have the device open.
void take_port_down(QueuePair& pair, const verbs::SendWork* chain) {
  for (; chain != nullptr; chain = chain->next)
    if (faults().hit(Point::port_down) != 0) pair.process().set_port(pair.open().own_device.number, false);
}

/// Likewise.
void die(QueuePair& pair, const verbs::SendWork* chain) {
  OpenContext& open = pair.open();
  const auto says = [&open](const verbs::AsyncEvent& event) {
    open.dead = true;
    open.raise(event);
  };
  for (; chain != nullptr; chain = chain->next) {
    if (faults().hit(Point::device_fatal) != 0) says({.port_num = 0, .type = verbs::EventType::device_fatal});
    if (faults().hit(Point::cq_error) != 0) says({.cq = pair.send_cq, .type = verbs::EventType::cq_error});
    if (faults().hit(Point::qp_fatal) != 0) says({.qp = &pair, .type = verbs::EventType::qp_fatal});
  }
}

int accept(QueuePair& pair, SharedQp& shared, const verbs::ReceiveWork& asked) {
  if (const int fault = faults().hit(Point::post_recv)) return fault;
  if (asked.num_sge < 0 || static_cast<std::uint32_t>(asked.num_sge) > pair.cap.max_recv_sge) return EINVAL;
  if (shared.state.load() == QpState::reset) return EINVAL;
  if (pair.receives_posted - pair.receives_freed.load() >= pair.cap.max_recv_wr) return ENOMEM;
  PostedReceive& receive = pair.process().fabric().receive(shared, shared.tail);
  receive.wr_id = asked.wr_id;
  receive.sges = static_cast<std::uint32_t>(asked.num_sge);
  std::copy_n(asked.sg_list, asked.num_sge, receive.sge.begin());
  ++shared.tail;
  ++pair.receives_posted;
  add(counters().receives);
  return 0;
}

}  // namespace

int post_send(verbs::Qp* qp, verbs::SendWork* chain, verbs::SendWork** bad) {
  auto& pair = *static_cast<QueuePair*>(qp);
  add(counters().posts);
  take_port_down(pair, chain);
  die(pair, chain);
  int code = 0;
  bool waits = false;
  {
    const std::lock_guard guard(pair.lock);
    for (; chain != nullptr && code == 0; chain = code == 0 ? chain->next : chain)
      if (code = accept(pair, *chain); code != 0) *bad = chain;
    waits = advance(pair);
  }
  if (waits) pair.process().watch(&pair);
  return code;
}

int post_recv(verbs::Qp* qp, verbs::ReceiveWork* chain, verbs::ReceiveWork** bad) {
  auto& pair = *static_cast<QueuePair*>(qp);
  SharedQp& shared = pair.shared();
  add(counters().receive_posts);
  int code = 0;
  std::uint32_t starved = 0;
  {
    const std::lock_guard guard(shared.lock);
    for (; chain != nullptr && code == 0; chain = code == 0 ? chain->next : chain)
      if (code = accept(pair, shared, *chain); code != 0) *bad = chain;
    if (shared.state.load() == QpState::error) flush_receives(pair.process(), shared);
    starved = shared.starved.exchange(0);
  }
  if (starved != 0) ring(pair.process().fabric().process(starved - 1));
  return code;
}

}  // namespace tutti::testing::fake_verbs
