// Queue pairs: made, taken from state to state, and destroyed.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include "exports.h"
#include "faults.h"
#include "identity.h"
#include "objects.h"
#include "states.h"

namespace tutti::testing::fake_verbs {
namespace {

int refusal(const FakeDevice& device, const verbs::QpInit& init) {
  const verbs::QpCapacity& cap = init.cap;
  const Settings& settings = device.settings;
  if (init.send_cq == nullptr || init.recv_cq == nullptr) return EINVAL;
  if (init.qp_type != verbs::QpType::reliable || init.srq != nullptr) return EOPNOTSUPP;
  if (cap.max_send_wr > settings.max_qp_wr || cap.max_recv_wr > settings.max_qp_wr) return EINVAL;
  if (cap.max_send_sge > max_sge || cap.max_recv_sge > max_sge) return EINVAL;
  return cap.max_inline_data > settings.max_inline ? EINVAL : 0;
}

void publish(QueuePair& pair) {
  SharedQp& shared = pair.shared();
  const OpenContext& open = pair.open();
  const std::lock_guard guard(shared.lock);
  shared.device = static_cast<std::uint32_t>(open.own_device.number);
  shared.pd = pair.pd->handle;
  shared.recv_cq = pair.receives().slot;
  shared.port = identity_of(open.own_device.settings, open.own_device.number);
  shared.owner = reinterpret_cast<std::uint64_t>(&pair);
  pair.qp_num = pair.handle = pair.process().fabric().number_of(pair.slot);
  shared.number.store(pair.qp_num);
}

/// Back to the beginning: nothing is posted, and nothing completes.
void reset(QueuePair& pair, SharedQp& shared) {
  shared.head = shared.tail = 0;
  pair.receives_posted = pair.posted = pair.delivered = pair.completed = 0;
  forget_completions(pair.sends(), pair);
  forget_completions(pair.receives(), pair);
  pair.freed.store(0);
  pair.receives_freed.store(0);
  pair.waits_for = Waits::none;
}

void share(const verbs::QpAttributes& attributes, SharedQp& shared) {
  shared.peer = attributes.dest_qp_num;
  shared.rq_psn = attributes.rq_psn;
  shared.sq_psn = attributes.sq_psn;
  shared.access = attributes.qp_access_flags;
}

void forget_events(QueuePair& pair) {
  OpenContext& open = pair.open();
  const std::lock_guard guard(open.lock);
  std::erase_if(open.events, [&](const verbs::AsyncEvent& event) {
    const bool of_pair = event.type == verbs::EventType::qp_fatal || event.type == verbs::EventType::qp_request_error ||
                         event.type == verbs::EventType::qp_access_error;
    return of_pair && event.qp == &pair;
  });
}

}  // namespace
}  // namespace tutti::testing::fake_verbs

using namespace tutti::testing::fake_verbs;
namespace verbs = tutti::verbs;

extern "C" {

verbs::Qp* ibv_create_qp(verbs::Pd* pd, verbs::QpInit* init) {
  auto& open = *static_cast<OpenContext*>(pd->context);
  if (const int fault = faults().hit(Point::create_qp)) return errno = fault, nullptr;
  if (const int code = refusal(open.own_device, *init)) return errno = code, nullptr;
  Process& process = *open.process;
  const std::uint32_t slot = process.fabric().take_qp(process.slot(), std::max(init->cap.max_recv_wr, 1u));
  if (slot == no_slot) return errno = ENOMEM, nullptr;
  auto* const pair = new QueuePair{};
  pair->context = pd->context;
  pair->qp_context = init->qp_context;
  pair->pd = pd;
  pair->send_cq = init->send_cq;
  pair->recv_cq = init->recv_cq;
  pair->qp_type = init->qp_type;
  pair->slot = slot;
  pair->cap = init->cap;
  pair->signals_all = init->sq_sig_all != 0;
  pair->works.resize(std::max(init->cap.max_send_wr, 1u));
  for (Work& work : pair->works) work.copy.reserve(pair->cap.max_inline_data);
  publish(*pair);
  pair->random.seed(process.settings().seed * 1'000'003 + pair->qp_num);
  for (CompletionQueue* const queue : {&pair->sends(), &pair->receives()}) ++queue->users;
  ++static_cast<Domain*>(pd)->users;
  process.add(pair);
  add(counters().queue_pairs);
  return pair;
}

int ibv_modify_qp(verbs::Qp* qp, verbs::QpAttributes* attributes, int mask) {
  auto& pair = *static_cast<QueuePair*>(qp);
  if (const int fault = faults().hit(Point::modify_qp)) return fault;
  SharedQp& shared = pair.shared();
  const std::lock_guard sends(pair.lock);
  {
    const std::lock_guard guard(shared.lock);
    const verbs::QpState from = shared.state.load();
    const bool moves = (mask & verbs::qp_attribute::state) != 0;
    const verbs::QpState to = moves ? attributes->qp_state : from;
    if (const int code = check_change(pair, from, to, *attributes, mask)) return code;
    take(pair.attributes, *attributes, mask);
    share(pair.attributes, shared);
    pair.state = pair.attributes.qp_state = to;
    if (to == verbs::QpState::reset) reset(pair, shared);
    if (to == verbs::QpState::error)
      stop(pair.process(), shared, -1);
    else
      shared.state.store(to);
  }
  if (pair.state == verbs::QpState::error) flush_sends(pair);
  return 0;
}

int ibv_query_qp(verbs::Qp* qp, verbs::QpAttributes* attributes, int /*mask*/, verbs::QpInit* init) {
  auto& pair = *static_cast<QueuePair*>(qp);
  const std::lock_guard guard(pair.lock);
  *attributes = pair.attributes;
  attributes->qp_state = attributes->cur_qp_state = pair.shared().state.load();
  attributes->cap = pair.cap;
  *init = {.qp_context = pair.qp_context,
           .send_cq = pair.send_cq,
           .recv_cq = pair.recv_cq,
           .srq = nullptr,
           .cap = pair.cap,
           .qp_type = pair.qp_type,
           .sq_sig_all = pair.signals_all ? 1 : 0};
  return 0;
}

int ibv_destroy_qp(verbs::Qp* qp) {
  auto* const pair = static_cast<QueuePair*>(qp);
  Process& process = pair->process();
  process.remove(pair);
  process.fabric().give_qp(pair->slot);
  forget_completions(pair->sends(), *pair);
  forget_completions(pair->receives(), *pair);
  forget_events(*pair);
  for (CompletionQueue* const queue : {&pair->sends(), &pair->receives()}) --queue->users;
  --static_cast<Domain*>(pair->pd)->users;
  add(counters().queue_pairs, ~std::uint64_t{0});
  delete pair;
  return 0;
}
}
