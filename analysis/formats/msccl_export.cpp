#include "analysis/formats/msccl_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/markup.h"
#include "formats/source.h"
#include "plan/jobs.h"
#include "plan/lower.h"

namespace tutti::formats {
namespace {

/// Empty: MSCCL has no such collective.
std::string_view coll_of(Collective collective) {
  for (const auto& [name, known] : collectives)
    if (known == collective) return name;
  return {};
}

/// A thread block: to a peer, from a peer, or neither.
struct Channel {
  Rank send = -1;
  Rank recv = -1;
  std::string text;
  int steps = 0;
  bool reduced = false;  // the last step is a `re`; a following `re` could be mistaken for a part of it
};

/// One instruction; a `re` with several sources becomes as many steps.
struct Op {
  std::string_view type;
  int channel = 0;
  std::vector<Ref> sources;
  Ref dst;
  std::vector<int> waits = {};  // ops of this rank in other channels, at most one per channel
  bool waited_for = false;
};

/// The order in which a job's messages are needed: the first operand is stored at the result's place, so it comes last.
std::vector<Operand> arrivals(const Job& job) {
  std::vector<Operand> remote;
  const bool chain = job.sources.size() > 2;
  for (std::size_t i = chain ? 1 : 0; i < job.sources.size(); ++i)
    if (job.sources[i].rank != job.to) remote.push_back(job.sources[i]);
  if (chain && job.sources[0].rank != job.to) remote.push_back(job.sources[0]);
  return remote;
}

/// One rank's work, in an order that is correct if executed sequentially; waits between channels keep the necessary
/// part of this order.
class Program {
 public:
  using Sends = std::vector<std::pair<Rank, Ref>>;

  Program(const Schedule& schedule, Rank rank)
      : schedule_(schedule),
        rank_(rank),
        scratch_(schedule.scratch_groups() * schedule.parts()),
        scratch_end_(scratch_) {}

  void send(Rank to, Ref src) { add("s", channel(to, -1), {src}, {}); }
  void make(const Job& job);
  void begin_step() { temporary_ = scratch_; }
  std::string text();

 private:
  struct Accesses {
    int write = -1;
    std::vector<int> reads = {};
  };

  int channel(Rank send, Rank recv) {
    const auto [at, is_new] = channel_of_.try_emplace({send, recv}, static_cast<int>(channels_.size()));
    if (is_new) channels_.push_back({.send = send, .recv = recv});
    return at->second;
  }
  int local() { return channel(-1, -1); }
  Ref temporary() {
    scratch_end_ = std::max(scratch_end_, temporary_ + 1);
    return {Buffer::scratch, temporary_++};
  }
  void chain(const Job& job);
  void bring(const Operand& operand, Ref dst);
  void add(std::string_view type, int channel, std::vector<Ref> sources, Ref dst);
  Accesses& accesses(Ref ref);
  void write(const Op& op);
  void write_step(Channel& channel, std::string_view type, Ref src, Ref dst, const Op* wait, bool waited_for);

  const Schedule& schedule_;
  Rank rank_;
  int scratch_;      // number of the schedule's own chunks
  int scratch_end_;  // end of the chunks added here
  int temporary_ = 0;
  std::map<std::pair<Rank, Rank>, int> channel_of_;
  std::vector<Channel> channels_;
  std::vector<Op> ops_;
  std::vector<int> last_step_;  // by op
  std::map<std::pair<Buffer, int>, Accesses> accesses_;
  std::vector<std::map<int, int>> seen_;  // by channel: the last op of each other channel that it has waited for
};

void Program::make(const Job& job) {
  const std::span<const Operand> sources = job.sources;
  if (sources.size() == 1) return bring(sources[0], job.dst);
  if (sources.size() > 2) return chain(job);
  // A sum of two has the same bits in either order.
  const bool second_is_own = sources[0].rank != rank_ && sources[1].rank == rank_;
  const Operand& own = sources[second_is_own ? 1 : 0];
  const Operand& other = sources[second_is_own ? 0 : 1];
  if (own.rank != rank_) {
    bring(own, job.dst);
    add("rrc", channel(-1, other.rank), {job.dst}, job.dst);
  } else if (other.rank != rank_) {
    add("rrc", channel(-1, other.rank), {own.ref}, job.dst);
  } else if (other.ref == job.dst) {
    add("re", local(), {own.ref}, job.dst);
  } else {
    bring(own, job.dst);
    add("re", local(), {other.ref}, job.dst);
  }
}

/// One pass over many operands: all but the first are in scratch, because only `re` steps from one buffer are fused.
void Program::chain(const Job& job) {
  std::vector<Ref> operands;
  for (std::size_t i = 1; i < job.sources.size(); ++i) {
    const Operand& operand = job.sources[i];
    const bool there = operand.rank == rank_ && operand.ref.buffer == Buffer::scratch && operand.ref != job.dst;
    operands.push_back(there ? operand.ref : temporary());
    if (!there) bring(operand, operands.back());
  }
  bring(job.sources[0], job.dst);
  add("re", local(), std::move(operands), job.dst);
}

void Program::bring(const Operand& operand, Ref dst) {
  if (operand.rank != rank_)
    add("r", channel(-1, operand.rank), {}, dst);
  else if (operand.ref != dst)
    add("cpy", local(), {operand.ref}, dst);
}

/// Treats input and output as one memory, so that the order of accesses also holds for calls in place.
Program::Accesses& Program::accesses(Ref ref) {
  if (ref.buffer != Buffer::input) return accesses_[{ref.buffer, ref.block}];
  const int same =
      in_place_block(schedule_.collective(), schedule_.ranks(), schedule_.parts(), rank_, schedule_.root(), ref.block);
  return same < 0 ? accesses_[{ref.buffer, ref.block}] : accesses_[{Buffer::output, same}];
}

void Program::add(std::string_view type, int channel, std::vector<Ref> sources, Ref dst) {
  const int number = static_cast<int>(ops_.size());
  Op op{.type = type, .channel = channel, .sources = std::move(sources), .dst = dst};
  std::map<int, int> wanted;  // by channel
  const auto wait = [&](int other) {
    if (other >= 0 && ops_[index(other)].channel != channel) {
      int& last = wanted.try_emplace(ops_[index(other)].channel, other).first->second;
      last = std::max(last, other);
    }
  };
  for (const Ref& source : op.sources) wait(accesses(source).write);
  if (type != "s") {
    const Accesses& before = accesses(dst);
    wait(before.write);
    for (const int reader : before.reads) wait(reader);
  }
  for (const Ref& source : op.sources) accesses(source).reads.push_back(number);
  if (type != "s") accesses(dst) = {.write = number};

  seen_.resize(channels_.size());
  for (const auto& [other_channel, other] : wanted) {
    const auto [at, is_new] = seen_[index(channel)].try_emplace(other_channel, other);
    if (!is_new && at->second >= other) continue;
    at->second = other;
    op.waits.push_back(other);
    ops_[index(other)].waited_for = true;
  }
  ops_.push_back(std::move(op));
}

void Program::write_step(Channel& channel, std::string_view type, Ref src, Ref dst, const Op* wait, bool waited_for) {
  static constexpr char names[] = {'i', 'o', 's'};
  const auto name = [](Ref ref) { return names[static_cast<int>(ref.buffer)]; };
  const int after = wait == nullptr ? -1 : static_cast<int>(wait - ops_.data());
  channel.text += fmt::format(
      "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" cnt=\"{}\" "
      "depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
      channel.steps++, type, name(src), src.block, name(dst), dst.block, type == "nop" ? 0 : 1,
      after < 0 ? -1 : wait->channel, after < 0 ? -1 : last_step_[index(after)], waited_for ? 1 : 0);
}

void Program::write(const Op& op) {
  Channel& channel = channels_[index(op.channel)];
  const Ref nothing{Buffer::input, 0};
  for (std::size_t i = 1; i < op.waits.size(); ++i)
    write_step(channel, "nop", nothing, nothing, &ops_[index(op.waits[i])], false);
  if (op.type == "re" && channel.reduced && op.waits.empty())
    write_step(channel, "nop", nothing, nothing, nullptr, false);
  const Op* wait = op.waits.empty() ? nullptr : &ops_[index(op.waits[0])];
  const std::size_t steps = std::max<std::size_t>(op.sources.size(), 1);
  for (std::size_t i = 0; i < steps; ++i) {
    const Ref src = op.sources.empty() ? op.dst : op.sources[i];
    const Ref dst = op.type == "s" ? src : op.dst;
    write_step(channel, op.type, src, dst, i == 0 ? wait : nullptr, i + 1 == steps && op.waited_for);
  }
  channel.reduced = op.type == "re";
  last_step_.push_back(channel.steps - 1);
}

std::string Program::text() {
  for (const Op& op : ops_) write(op);
  const int n = schedule_.ranks(), parts = schedule_.parts();
  const Collective collective = schedule_.collective();
  const int inputs = collective == Collective::reduce_scatter || collective == Collective::all_to_all ? n : 1;
  const int outputs = collective == Collective::all_gather || collective == Collective::all_to_all ? n : 1;
  std::string text = fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", rank_,
                                 inputs * parts, outputs * parts, scratch_end_);
  for (std::size_t id = 0; id < channels_.size(); ++id)
    text += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n{}    </tb>\n", id, channels_[id].send,
                        channels_[id].recv, channels_[id].text);
  return text + "  </gpu>\n";
}

}  // namespace

Result<std::string> export_msccl(const Schedule& schedule, std::string_view name) {
  const Collective collective = schedule.collective();
  if (coll_of(collective).empty()) return invalid_argument(fmt::format("MSCCL XML has no {}", tutti::name(collective)));
  if (!lowers_to(schedule, Access::slots))
    return invalid_argument(
        "in some step no order of a rank's passes lets all of them read the values at its beginning");

  // A receiver takes messages in the order of its work, so they are sent in that order.
  const Jobs jobs(schedule, Access::slots);
  std::vector<std::map<int, Program::Sends>> sends(index(schedule.ranks()));  // by sender and step
  for (Rank rank = 0; rank < schedule.ranks(); ++rank)
    for (const int job : jobs.of(rank))
      for (const Operand& operand : arrivals(jobs.job(job)))
        sends[index(operand.rank)][jobs.job(job).step].push_back({rank, operand.ref});

  const bool per_rank = collective == Collective::all_gather || collective == Collective::reduce_scatter ||
                        collective == Collective::all_to_all;
  std::string text = fmt::format(
      "<algo name=\"{}\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" inplace=\"0\" "
      "outofplace=\"1\" minBytes=\"0\" maxBytes=\"1099511627776\"{}>\n",
      escaped(name), schedule.parts() * (per_rank ? schedule.ranks() : 1), schedule.ranks(), coll_of(collective),
      rooted(collective) ? fmt::format(" root=\"{}\"", schedule.root()) : "");
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    Program program(schedule, rank);
    std::size_t next = 0;
    const std::vector<int>& own = jobs.of(rank);
    for (int step = 0; step < schedule.steps(); ++step) {
      program.begin_step();
      for (const auto& [to, ref] : sends[index(rank)][step]) program.send(to, ref);
      for (; next < own.size() && jobs.job(own[next]).step == step; ++next) program.make(jobs.job(own[next]));
    }
    text += program.text();
  }
  return text + "</algo>\n";
}

}  // namespace tutti::formats
