// Which ranks an algorithm has to look at: all of them, or those whose transfers concern one rank (Shape::only); and
// what all-gathers do with blocks.
#pragma once

#include <algorithm>

#include "plan/schedule.h"

namespace tutti {

/// A container's elements, last one first. std::views::reverse of libstdc++ 12 is too much for clang 14.
template <class Container>
class Reversed {
 public:
  explicit Reversed(const Container& of) : of_(of) {}
  auto begin() const { return of_.rbegin(); }
  auto end() const { return of_.rend(); }

 private:
  const Container& of_;
};

/// Calls `visit` with each rank that may send, in ascending order, where each sends to one other rank: all ranks, or
/// the one in question and the one that sends to it, sender_to(rank). That is -1 if nobody does.
template <class SenderTo, class Visit>
void for_each_sender(const Shape& shape, SenderTo&& sender_to, Visit&& visit) {
  if (shape.only == Shape::everybody) {
    for (Rank rank = 0; rank < shape.ranks; ++rank) visit(rank);
    return;
  }
  const auto [first, last] = std::minmax({shape.only, static_cast<Rank>(sender_to(shape.only))});
  if (first >= 0) visit(first);
  if (first != last) visit(last);
}

/// As above, where each rank sends `ahead` ranks ahead, cyclically.
template <class Visit>
void for_each_sender_ahead(const Shape& shape, int ahead, Visit&& visit) {
  for_each_sender(
      shape, [&](Rank rank) { return (rank - ahead % shape.ranks + shape.ranks) % shape.ranks; }, visit);
}

/// Calls `visit` with each rank that may be concerned on its own: all, or the one in question.
template <class Visit>
void for_each_rank(const Shape& shape, Visit&& visit) {
  for_each_sender(
      shape, [](Rank rank) { return rank; }, visit);
}

/// Calls `visit` with each rank that `rank` may exchange data with, itself included: all, or, unless `rank` is the one
/// in question, that one.
template <class Visit>
void for_each_partner(const Shape& shape, Rank rank, Visit&& visit) {
  if (shape.only != Shape::everybody && shape.only != rank) return visit(shape.only);
  for (Rank other = 0; other < shape.ranks; ++other) visit(other);
}

/// How an all-gather begins: each rank's block in its place in the rank's own output.
inline Schedule with_own_blocks(const Shape& shape) {
  Schedule schedule(shape, /*parts=*/1);
  for_each_rank(shape, [&](Rank rank) { schedule.copy(rank, {Buffer::input, 0}, rank, {Buffer::output, rank}); });
  return schedule;
}

/// `from` gives `to` the block of `group`: its own, which is in its input, or one that it has received.
inline void pass_on(Schedule& schedule, Rank group, Rank from, Rank to) {
  schedule.copy(from, group == from ? Ref{Buffer::input, 0} : Ref{Buffer::output, group}, to, {Buffer::output, group});
}

/// An all-gather in which a rank's data grows by a factor of `radix` in each step: a rank that `have` blocks have come
/// to, its own and those behind it, cyclically, sends them to the ranks `have`, 2·`have`, … ahead. `ahead` is 1, or -1
/// if that is downwards.
template <int ahead>
Schedule growing(const Shape& shape, int radix) {
  const int n = shape.ranks;
  const auto away = [&](Rank rank, int distance) { return (rank + ahead * distance + n) % n; };
  Schedule schedule = with_own_blocks(shape);
  for (int have = 1; have < n; have *= radix, schedule.next_step())
    for (int distance = have; distance < std::min(have * radix, n); distance += have)
      for_each_sender_ahead(shape, away(0, distance), [&](Rank rank) {
        for (int i = 0; i < std::min(have, n - distance); ++i)
          pass_on(schedule, away(rank, -i), rank, away(rank, distance));
      });
  return schedule;
}

/// The number of blocks in its largest message.
inline int items_of_growing(const Shape& shape, int radix) {
  int most = 0;
  for (int have = 1; have < shape.ranks; have *= radix) most = std::max(most, std::min(have, shape.ranks - have));
  return most;
}

}  // namespace tutti
