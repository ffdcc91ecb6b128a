#include "analysis/simulator/schedule_messages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>

namespace tutti::simulator {
namespace {

class ScheduleMessages : public MessageSource {
 public:
  ScheduleMessages(const Schedule& schedule, double bytes)
      : schedule_(schedule),
        block_bytes_(schedule.collective() == Collective::barrier ? 0 : bytes / blocks_of_call(schedule)) {}

  int endpoints() const override { return schedule_.ranks(); }
  int steps() const override { return schedule_.steps(); }

  void messages_of(int step, std::vector<Message>& messages) override {
    messages.clear();
    const std::vector<Transfer>& all = schedule_.transfers();
    std::size_t end = next_;
    while (end < all.size() && all[end].step == step) ++end;
    own_.clear();
    for (std::size_t i = next_; i < end; ++i)
      if (all[i].kind == Kind::reduce && all[i].from == all[i].to) own_.insert(place(all[i]));
    for (std::size_t i = next_; i < end; ++i)
      if (all[i].from != all[i].to) add(all[i], messages);
    next_ = end;
    join(messages);
  }

 private:
  static std::uint64_t place(const Transfer& t) {
    return (static_cast<std::uint64_t>(t.to) << 34) + (static_cast<std::uint64_t>(t.dst.buffer) << 32) +
           static_cast<std::uint64_t>(t.dst.block);
  }

  void add(const Transfer& t, std::vector<Message>& messages) {
    // The first operand of a sum costs nothing.
    const bool adds = t.kind == Kind::reduce && !own_.insert(place(t)).second;
    if (messages.empty() || messages.back().from != t.from || messages.back().to != t.to)
      messages.push_back({.from = t.from, .to = t.to, .step = t.step});
    messages.back().bytes += block_bytes_;
    if (adds) messages.back().reduced += block_bytes_;
  }

  /// Merges the messages of each pair into one.
  void join(std::vector<Message>& messages) const {
    const int n = schedule_.ranks();
    const auto key = [n](const Message& m) { return std::pair(m.from, (m.to - m.from + n) % n); };
    std::ranges::sort(messages, {}, key);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (kept > 0 && key(messages[kept - 1]) == key(messages[i])) {
        messages[kept - 1].bytes += messages[i].bytes;
        messages[kept - 1].reduced += messages[i].reduced;
      } else {
        messages[kept++] = messages[i];
      }
    }
    messages.resize(kept);
  }

  const Schedule& schedule_;
  double block_bytes_;
  std::size_t next_ = 0;                   // the first transfer not yet processed
  std::unordered_set<std::uint64_t> own_;  // destinations of this step's sums that already have an operand
};

}  // namespace

double blocks_of_call(const Schedule& schedule) {
  int groups = 1;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    groups = std::max({groups, input_groups(schedule.collective(), schedule.ranks(), rank, schedule.root()),
                       output_groups(schedule.collective(), schedule.ranks(), rank, schedule.root())});
  return static_cast<double>(groups) * schedule.parts();
}

std::unique_ptr<MessageSource> messages_of(const Schedule& schedule, double bytes) {
  return std::make_unique<ScheduleMessages>(schedule, bytes);
}

}  // namespace tutti::simulator
