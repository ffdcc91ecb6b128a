// Completion queues, and the channels on which a thread sleeps until one has something.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include "exports.h"
#include "faults.h"
#include "objects.h"
#include "post.h"

namespace tutti::testing::fake_verbs {

void push(Process& here, std::uint32_t cq_slot, const CqEntry& entry) {
  SharedCq& cq = here.fabric().cq(cq_slot);
  {
    const std::lock_guard guard(cq.lock);
    if (cq.broken.load()) return;
    const std::uint32_t tail = cq.tail.load();
    if (tail - cq.head.load() < cq.capacity) {
      here.fabric().entry(cq, tail) = entry;
      cq.tail.store(tail + 1);
      if (!cq.armed || cq.wake < 0) return;
      cq.armed = false;
      here.wake_channel(cq);  // first: who is killed here leaves a wake without an event, not an event without a wake
      ++cq.unfetched;
      return;
    }
    cq.broken.store(true);
  }
  here.call_attention(cq.process);
}

int poll_cq(verbs::Cq* cq, int entries, verbs::Completion* completions) {
  auto& queue = *static_cast<CompletionQueue*>(cq);
  add(counters().polls);
  if (const int fault = faults().hit(Point::poll_cq)) return -fault;
  Process& here = *queue.open().process;
  here.progress();
  SharedCq& shared = queue.shared();
  if (shared.head.load() == shared.tail.load()) return shared.broken.load() ? -EIO : 0;
  const std::lock_guard guard(shared.lock);
  int taken = 0;
  for (; taken < entries && shared.head.load() != shared.tail.load(); ++taken) {
    const CqEntry& entry = here.fabric().entry(shared, shared.head.load());
    completions[taken] = entry.completion;
    auto& pair = *reinterpret_cast<QueuePair*>(entry.owner);
    if (entry.freed != 0)
      pair.freed.store(entry.freed);
    else
      pair.receives_freed.fetch_add(1);
    shared.head.fetch_add(1);
  }
  add(counters().completions, static_cast<std::uint64_t>(taken));
  return taken;
}

int req_notify_cq(verbs::Cq* cq, int /*solicited_only*/) {
  auto& queue = *static_cast<CompletionQueue*>(cq);
  add(counters().arms);
  if (const int fault = faults().hit(Point::req_notify)) return fault;
  const std::lock_guard guard(queue.shared().lock);
  queue.shared().armed = true;
  return 0;
}

void forget_completions(CompletionQueue& queue, const QueuePair& pair) {
  Fabric& fabric = queue.open().process->fabric();
  SharedCq& shared = queue.shared();
  const std::lock_guard guard(shared.lock);
  std::uint32_t kept = shared.head.load();
  for (std::uint32_t at = kept; at != shared.tail.load(); ++at)
    if (fabric.entry(shared, at).owner != reinterpret_cast<std::uint64_t>(&pair))
      fabric.entry(shared, kept++) = fabric.entry(shared, at);
  shared.tail.store(kept);
}

namespace {

/// The queue whose event is next, under the channel's lock; null: that of a queue which is gone.
CompletionQueue* fetch(Channel& channel) {
  for (auto at = channel.queues.begin(); at != channel.queues.end(); ++at) {
    CompletionQueue* const queue = *at;
    const std::lock_guard guard(queue->shared().lock);
    if (queue->shared().unfetched == 0) continue;
    --queue->shared().unfetched;
    std::rotate(at, at + 1, channel.queues.end());  // others come first the next time
    return queue;
  }
  return nullptr;
}

/// Events of a queue that is destroyed are not fetched any more.
void drop_events(Channel& channel, CompletionQueue& queue) {
  const std::lock_guard guard(channel.lock);
  std::erase(channel.queues, &queue);
  --channel.refcnt;
  pollfd item{.fd = channel.fd, .events = POLLIN, .revents = 0};
  std::uint64_t event = 0;
  for (; queue.shared().unfetched > 0 && ::poll(&item, 1, 0) == 1; --queue.shared().unfetched)
    (void)!::read(channel.fd, &event, sizeof event);
}

}  // namespace
}  // namespace tutti::testing::fake_verbs

using namespace tutti::testing::fake_verbs;
namespace verbs = tutti::verbs;

extern "C" {

verbs::CompletionChannel* ibv_create_comp_channel(verbs::Context* context) {
  if (const int fault = faults().hit(Point::create_comp_channel)) return errno = fault, nullptr;
  auto channel = std::make_unique<Channel>();
  channel->context = context;
  channel->fd = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  if (channel->fd < 0) return nullptr;
  channel->id = static_cast<OpenContext*>(context)->process->fabric().next_serial();
  add(counters().channels);
  return channel.release();
}

int ibv_destroy_comp_channel(verbs::CompletionChannel* channel) {
  if (channel->refcnt > 0) return EBUSY;
  ::close(channel->fd);
  add(counters().channels, ~std::uint64_t{0});
  delete static_cast<Channel*>(channel);
  return 0;
}

verbs::Cq* ibv_create_cq(verbs::Context* context, int entries, void* cq_context, verbs::CompletionChannel* channel,
                         int vector) {
  auto& open = *static_cast<OpenContext*>(context);
  if (const int fault = faults().hit(Point::create_cq)) return errno = fault, nullptr;
  if (entries < 1 || static_cast<std::uint32_t>(entries) > open.own_device.settings.max_cqe || vector < 0 ||
      vector >= context->num_comp_vectors)
    return errno = EINVAL, nullptr;
  const std::uint32_t slot = open.process->fabric().take_cq(open.process->slot(), static_cast<std::uint32_t>(entries));
  if (slot == no_slot) return errno = ENOMEM, nullptr;
  auto* const queue = new CompletionQueue{};
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = cq_context;
  queue->handle = slot;
  queue->cqe = entries;
  queue->slot = slot;
  pthread_mutex_init(&queue->mutex, nullptr);
  pthread_cond_init(&queue->cond, nullptr);
  add(counters().completion_queues);
  if (channel == nullptr) return queue;
  auto& wakes = *static_cast<Channel*>(channel);
  const std::lock_guard guard(wakes.lock);
  ++wakes.refcnt;
  wakes.queues.push_back(queue);
  queue->shared().wake = wakes.fd;
  queue->shared().wake_id = wakes.id;
  return queue;
}

int ibv_destroy_cq(verbs::Cq* cq) {
  auto* const queue = static_cast<CompletionQueue*>(cq);
  if (queue->users.load() > 0) return EBUSY;
  if (queue->channel != nullptr) drop_events(*static_cast<Channel*>(queue->channel), *queue);
  pthread_mutex_lock(&queue->mutex);
  while (queue->comp_events_completed != queue->fetched) pthread_cond_wait(&queue->cond, &queue->mutex);
  pthread_mutex_unlock(&queue->mutex);
  queue->open().process->fabric().give_cq(queue->slot);
  pthread_mutex_destroy(&queue->mutex);
  pthread_cond_destroy(&queue->cond);
  add(counters().completion_queues, ~std::uint64_t{0});
  delete queue;
  return 0;
}

int ibv_get_cq_event(verbs::CompletionChannel* channel, verbs::Cq** cq, void** cq_context) {
  auto& wakes = *static_cast<Channel*>(channel);
  for (;;) {
    std::uint64_t event = 0;
    if (::read(wakes.fd, &event, sizeof event) != sizeof event) return -1;
    const std::lock_guard guard(wakes.lock);
    CompletionQueue* const queue = fetch(wakes);
    if (queue == nullptr) continue;
    pthread_mutex_lock(&queue->mutex);
    ++queue->fetched;
    pthread_mutex_unlock(&queue->mutex);
    *cq = queue;
    *cq_context = queue->cq_context;
    return 0;
  }
}

void ibv_ack_cq_events(verbs::Cq* cq, unsigned count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}
}
