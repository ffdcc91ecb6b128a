// How a block waits for other ranks: all its threads together, checking the abort word and the clock.
#pragma once

#include "kernels/block.h"
#include "kernels/entries.h"

namespace tutti::device {

/// The part of a launch that one block serves: one channel of one rank.
struct BlockPart {
  const RankCall& rank;
  std::uint32_t channel;
  Link* links;  ///< of the channel, by peer
};

template <Block B>
TUTTI_DEVICE BlockPart part_of(const B& b, const Call& call) {
  const auto block = static_cast<std::uint32_t>(b.block());
  const RankCall& rank = call.local[block / call.channels];
  const std::uint32_t channel = block % call.channels;
  return {rank, channel, rank.links + std::size_t{channel} * call.ranks};
}

/// The number of this thread if the first thread of a warp had number 0. Different warps can so do different things at
/// a time, whatever the number of threads.
template <Block B>
TUTTI_DEVICE std::uint32_t thread_from(const B& b, std::uint32_t warp) {
  constexpr std::uint32_t warp_threads = 32;
  const auto threads = static_cast<std::uint32_t>(b.threads());
  return (static_cast<std::uint32_t>(b.thread()) + threads - warp * warp_threads % threads) % threads;
}

/// The links of a block's channel in shared memory. Their counters are also stored back to where they came from.
struct HeldLinks {
  Link of[ranks_max];

  /// A thread per peer; a barrier must follow.
  template <Block B>
  TUTTI_DEVICE void load(const B& b, const Link* from, std::uint32_t ranks) {
    for (std::uint32_t peer = thread_from(b, 0); peer < ranks; peer += static_cast<std::uint32_t>(b.threads()))
      of[peer] = from[peer];
  }

  /// Increments a counter.
  TUTTI_DEVICE std::uint64_t one_more(Link* from, std::uint32_t peer, std::uint64_t Link::*counter) {
    return from[peer].*counter = ++(of[peer].*counter);
  }
};

/// Shared memory of a block that runs a body.
template <Body>
struct Shared;

/// The part of it that waits use.
struct WaitShared {
  std::uint32_t failed[ranks_max];  ///< why a thread gave up, by the object it waited for
};

/// The links of a block's channel for its barriers, loaded early so that a barrier need not wait for them. Entry i is
/// used only by the thread that handles peer i.
struct BarrierLinks {
  std::uint64_t* there[ranks_max];
  const std::uint64_t* here[ranks_max];
  std::uint64_t raised[ranks_max];
  std::uint64_t taken[ranks_max];
};

template <Block B>
TUTTI_DEVICE void fetch(B& b, BarrierLinks& m, const Link* links, int ranks) {
  for (int peer = b.thread(); peer < ranks; peer += b.threads()) {
    m.there[peer] = links[peer].flag_there;
    m.here[peer] = links[peer].flag_here;
    m.raised[peer] = links[peer].raised;
    m.taken[peer] = links[peer].taken;
  }
}

/// Of one thread: why it must not wait any longer; none: it may. `began`: when it first asked; 0: it has not.
template <Block B>
TUTTI_DEVICE std::uint32_t end_of_wait(B& b, const Call& call, std::uint64_t& began) {
  const std::uint32_t word = b.load_relaxed(call.abort);
  if (word == AbortWord::all_ends) return ErrorRecord::aborted;
  if (word == AbortWord::goes_on && call.limit_ns == 0) return ErrorRecord::none;
  const std::uint64_t now = b.now_ns();
  if (began == 0) began = now;
  if (word != AbortWord::goes_on && now - began > gone_ns) return ErrorRecord::aborted;
  return call.limit_ns != 0 && now - began > call.limit_ns ? ErrorRecord::late : ErrorRecord::none;
}

/// Waits until ready(), unless the call is aborted or the limit passes.
template <Block B, class Ready>
TUTTI_DEVICE std::uint32_t wait_until(B& b, const Call& call, Ready ready) {
  constexpr std::uint32_t looks = 1024;  // checks the abort word rarely: it is far away, in the host's memory
  std::uint32_t spins = 0;
  std::uint64_t began = 0;
  while (!ready()) {
    if (++spins % looks == 0)
      if (const std::uint32_t why = end_of_wait(b, call, began); why != ErrorRecord::none) return why;
    b.pause();
  }
  return ErrorRecord::none;
}

/// True if the value at `word` is at least `wanted`.
template <Block B>
TUTTI_DEVICE bool reached(B& b, const std::uint64_t* word, std::uint64_t wanted) {
  if constexpr (B::fault == Fault::acquire_relaxed)
    return b.load_relaxed(word) >= wanted;
  else
    return b.load_acquire(word) >= wanted;
}

/// Raises a word that a peer polls. All stores of the block before its last barrier precede it.
template <Block B>
TUTTI_DEVICE void raise(B& b, std::uint64_t* word, std::uint64_t value) {
  // An order that other GPUs do not see is none to them.
  if constexpr (B::fault == Fault::release_relaxed || B::fault == Fault::gpu_scope)
    b.store_relaxed(word, value);
  else
    b.store_release(word, value);
}

template <Block B>
TUTTI_DEVICE void publish(B& b) {
  if constexpr (B::fault != Fault::no_publish_barrier) b.sync(Barrier::publish);
}

/// Thread i has stored the result of its wait in failed[i]. True if all waits succeeded.
template <Block B>
TUTTI_DEVICE bool all_came(B& b, bool mine_failed) {
  if constexpr (B::fault == Fault::no_vote) return !mine_failed;
  return !b.sync_any(mine_failed);
}

/// False: an earlier kernel has said in the record already why it gave up. By one thread.
template <Block B>
TUTTI_DEVICE bool is_free(B& b, const ErrorRecord& record) {
  return b.load_relaxed(&record.state) == ErrorRecord::none;
}

/// Reports the first failed wait to the host, and stops all other blocks of the launch. By all threads, after all_came
/// was false. `describe(i, record)` fills in what the i-th wait was for.
template <Block B, class Describe>
TUTTI_DEVICE void give_up(B& b, WaitShared& s, const Call& call, ErrorRecord& record, int waits, Describe describe) {
  if (b.thread() != 0) return;
  for (int i = 0; i < waits; ++i) {
    const std::uint32_t state = s.failed[i];
    if (state == ErrorRecord::none) continue;
    if (is_free(b, record)) {
      describe(i, record);
      record.message = 0;
      b.store_release(&record.state, state);
    }
    break;
  }
  b.store_relaxed(call.abort, std::uint32_t{AbortWord::all_ends});
}

/// The first half of a barrier: this rank's block of the channel has arrived, with all that it has stored. `m` must
/// have been fetched.
template <Block B>
TUTTI_DEVICE void arrive(B& b, BarrierLinks& m, const Call& call, const RankCall& rank, int channel) {
  Link* const links = rank.links + static_cast<std::size_t>(channel) * call.ranks;
  publish(b);
  for (int peer = b.thread(); peer < static_cast<int>(call.ranks); peer += b.threads())
    if (peer != static_cast<int>(rank.rank)) {
      links[peer].raised = ++m.raised[peer];
      raise(b, m.there[peer], m.raised[peer]);
    }
}

/// The second half: waits until the blocks of all ranks have arrived. `nth` is its number in the call, for error
/// records. False: gave up.
template <Block B>
TUTTI_DEVICE bool await_all(B& b, WaitShared& s, BarrierLinks& m, const Call& call, const RankCall& rank, int channel,
                            std::uint32_t nth) {
  const int ranks = static_cast<int>(call.ranks);
  Link* const links = rank.links + static_cast<std::size_t>(channel) * call.ranks;
  bool failed = false;
  for (int peer = b.thread(); peer < ranks; peer += b.threads()) {
    s.failed[peer] = ErrorRecord::none;
    if (peer == static_cast<int>(rank.rank) || failed) continue;
    const std::uint64_t wanted = links[peer].taken = ++m.taken[peer];
    s.failed[peer] = wait_until(b, call, [&] { return reached(b, m.here[peer], wanted); });
    failed = s.failed[peer] != ErrorRecord::none;
  }
  if (all_came(b, failed)) return true;
  give_up(b, s, call, rank.errors[channel], ranks, [&](int peer, ErrorRecord& record) {
    record.peer = static_cast<std::uint32_t>(peer);
    record.action = 0;
    record.step = nth;
    record.tile = 0;
    record.verb = static_cast<std::uint32_t>(Verb::wait);
  });
  return false;
}

/// A barrier: all ranks' blocks of this channel arrive before any continues, and see all stores that the others made
/// before. False: gave up.
template <Block B>
TUTTI_DEVICE bool barrier(B& b, WaitShared& s, BarrierLinks& m, const Call& call, const RankCall& rank, int channel,
                          std::uint32_t nth) {
  arrive(b, m, call, rank, channel);
  return await_all(b, s, m, call, rank, channel, nth);
}

}  // namespace tutti::device
