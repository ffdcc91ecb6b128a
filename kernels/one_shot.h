// The body of a small all-reduce: every rank stores its input into the inboxes of all others, each four bytes with a
// flag that identifies the call, and reduces what it receives in rank order. It uses no window, and ranks do not
// synchronise first: one transfer to a peer, which is all that a small call has time for.
#pragma once

#include <cstddef>

#include "kernels/block.h"
#include "kernels/entries.h"
#include "kernels/extent.h"
#include "kernels/inboxes.h"
#include "kernels/ops.h"
#include "kernels/pass.h"
#include "kernels/waiting.h"

namespace tutti::device {

template <>
struct Shared<Body::one_shot> {
  InboxShared inboxes;
};

/// Elements that travel in one flagged word.
template <class T>
struct OneShotWord {
  static constexpr int size = static_cast<int>(8 / sizeof(T));
  T at[size];
};

template <class T, Block B>
class OneShot {
 public:
  TUTTI_DEVICE OneShot(B& b, Shared<Body::one_shot>& s, const Call& call, const BlockPart& part)
      : b_(b),
        inboxes_(b, s.inboxes, call, part),
        call_(call),
        rank_(part.rank),
        links_(part.links),
        channel_(part.channel),
        ranks_(static_cast<int>(call.ranks)),
        self_(static_cast<int>(rank_.rank)) {}

  TUTTI_DEVICE void run() {
    if (channel_ >= call_.cut.tiles) return;  // equal on all ranks; a channel has one tile
    extent_ = extent_of(call_.cut, 0, channel_);
    const std::uint64_t words = (extent_.count + Word::size - 1) / Word::size;
    const auto threads = static_cast<std::uint64_t>(b_.threads());
    const auto thread = static_cast<std::uint64_t>(b_.thread());
    Word first{};  // loaded while the links are looked up
    if (thread < words) first = own(thread);
    if (!inboxes_.look_up(links_)) return;
    const bool compares = call_.synchronises != 0;
    if (compares) inboxes_.send_signature();
    for (std::uint64_t word = thread; word < words; word += threads) send(word, word == thread ? first : own(word));
    if (compares && !inboxes_.same_call()) return;
    for (std::uint64_t word = thread; word < words && !inboxes_.gave_up(); word += threads)
      combine(word, word == thread ? first : own(word));
    if (b_.sync_any(inboxes_.gave_up()))
      inboxes_.report();
    else
      inboxes_.close();
  }

 private:
  using Word = OneShotWord<T>;
  using A = Accumulate<T>;
  static constexpr int batch = 8;  // ranks that are waited for together

  /// The signature comes first.
  static TUTTI_DEVICE std::uint64_t number_of(std::uint64_t word) { return word + 1; }

  /// This rank's elements of a word; zeros if there are none.
  TUTTI_DEVICE Word own(std::uint64_t word) {
    Word elements{};
    const std::byte* const at = rank_.input + (extent_.begin + word * Word::size) * sizeof(T);
    if (reinterpret_cast<std::size_t>(at) % 8 == 0 && (word + 1) * Word::size <= extent_.count) {
      elements = bits_of<Word>(b_.template load<8>(at));
    } else {
      TUTTI_UNROLL
      for (int i = 0; i < Word::size; ++i)
        if (word * Word::size + static_cast<std::uint64_t>(i) < extent_.count)
          elements.at[i] = bits_of<T>(b_.template load<static_cast<int>(sizeof(T))>(at + i * sizeof(T)));
    }
    if (call_.scaled != 0) {
      const T factor = bits_of<T>(call_.buffers[self_].scalar);
      TUTTI_UNROLL
      for (int i = 0; i < Word::size; ++i) elements.at[i] = scale(elements.at[i], factor);
    }
    return elements;
  }

  TUTTI_DEVICE void send(std::uint64_t word, const Word& mine) {
    struct Halves {
      std::uint32_t data[2];
    };
    const auto halves = bits_of<Halves>(mine);
    for (int i = 1; i < ranks_; ++i) {
      const int peer = self_ + i < ranks_ ? self_ + i : self_ + i - ranks_;
      inboxes_.store(peer, number_of(word), halves.data[0], halves.data[1]);
    }
  }

  TUTTI_DEVICE bool is_sent(int rank) const { return rank < ranks_ && rank != self_; }

  /// Receives from ranks [first, first + batch). Polls all of them at once, as one poll takes as long as all. False:
  /// gave up.
  TUTTI_DEVICE bool receive(int first, std::uint64_t word, FlaggedWord (&got)[batch]) {
    const std::uint32_t state = wait_until(b_, call_, [&] {
      TUTTI_UNROLL
      for (int i = 0; i < batch; ++i)
        if (is_sent(first + i)) got[i] = inboxes_.load(first + i, number_of(word));
      bool all = true;
      TUTTI_UNROLL
      for (int i = 0; i < batch; ++i) all = all && (!is_sent(first + i) || inboxes_.is_complete(got[i]));
      return all;
    });
    if (state == ErrorRecord::none) return true;
    TUTTI_UNROLL
    for (int i = batch - 1; i >= 0; --i)
      if (is_sent(first + i) && !inboxes_.is_complete(got[i])) inboxes_.give_up(first + i, state);
    return false;
  }

  TUTTI_DEVICE void combine(std::uint64_t word, const Word& mine) {
    switch (call_.op) {
      case ReduceOp::prod: return combine_as<Prod>(word, mine);
      case ReduceOp::max: return combine_as<Max>(word, mine);
      case ReduceOp::min: return combine_as<Min>(word, mine);
      default: return combine_as<Sum>(word, mine);
    }
  }

  template <class Op>
  TUTTI_DEVICE void combine_as(std::uint64_t word, const Word& mine) {
    A result[Word::size]{};
    if (!combine_all<Op, false>(word, mine, A{1}, result)) return;
    if (call_.average != 0 && !average(word, mine, result)) return;
    Word rounded{};
    TUTTI_UNROLL
    for (int i = 0; i < Word::size; ++i) rounded.at[i] = narrow<T>(result[i]);
    put(word, rounded);
  }

  /// The end of an average, as in reduce_scalar(). False: gave up.
  TUTTI_DEVICE bool average(std::uint64_t word, const Word& mine, A (&result)[Word::size]) {
    if constexpr (sum_can_overflow<T>) {
      bool finite = true;
      TUTTI_UNROLL
      for (int i = 0; i < Word::size; ++i) finite = finite && is_finite(result[i]);
      if (!finite) {
        const A half = half_for<T>(ranks_, 0);
        A again[Word::size]{};
        if (!combine_all<Sum, true>(word, mine, half, again)) return false;  // all of them are still there
        TUTTI_UNROLL
        for (int i = 0; i < Word::size; ++i)
          result[i] = is_finite(result[i]) ? divide(result[i], ranks_) : finish_halved<T>(again[i], ranks_, half);
        return true;
      }
    }
    TUTTI_UNROLL
    for (int i = 0; i < Word::size; ++i) result[i] = divide(result[i], ranks_);
    return true;
  }

  /// Combines the elements of all ranks, if `Halves` each times `half`. False: gave up.
  template <class Op, bool Halves>
  TUTTI_DEVICE bool combine_all(std::uint64_t word, const Word& mine, A half, A (&result)[Word::size]) {
    TUTTI_ROLL
    for (int first = 0; first < ranks_; first += batch) {
      FlaggedWord got[batch]{};
      if (!receive(first, word, got)) return false;
      TUTTI_UNROLL
      for (int i = 0; i < batch; ++i) {
        if (first + i >= ranks_) continue;
        const std::uint32_t halves[2] = {got[i].data0, got[i].data1};
        const Word operand = first + i == self_ ? mine : bits_of<Word>(halves);
        TUTTI_UNROLL
        for (int j = 0; j < Word::size; ++j) {
          A value = widen(operand.at[j]);
          if constexpr (Halves) value *= half;
          result[j] = first + i == 0 ? value : Op{}(result[j], value);
        }
      }
    }
    return true;
  }

  TUTTI_DEVICE void put(std::uint64_t word, const Word& elements) {
    std::byte* const at = rank_.output + (extent_.begin + word * Word::size) * sizeof(T);
    if (reinterpret_cast<std::size_t>(at) % 8 == 0 && (word + 1) * Word::size <= extent_.count) {
      b_.template store<8>(at, bits_of<Pack<8>>(elements));
      return;
    }
    TUTTI_UNROLL
    for (int i = 0; i < Word::size; ++i)
      if (word * Word::size + static_cast<std::uint64_t>(i) < extent_.count)
        b_.template store<static_cast<int>(sizeof(T))>(at + i * sizeof(T),
                                                       bits_of<Pack<static_cast<int>(sizeof(T))>>(elements.at[i]));
  }

  B& b_;
  Inboxes<B> inboxes_;
  const Call& call_;
  const RankCall& rank_;
  const Link* links_;
  std::uint32_t channel_;
  int ranks_;
  int self_;
  Extent extent_{};
};

template <class T, Block B>
TUTTI_DEVICE void one_shot(B& b, Shared<Body::one_shot>& s, const Call& call) {
  OneShot<T, B>(b, s, call, part_of(b, call)).run();
}

}  // namespace tutti::device
