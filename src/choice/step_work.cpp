#include "choice/step_work.h"

#include <span>

#include "base/limits.h"

namespace tutti {
namespace {

/// Goes through the transfers of one rank as lowering and fusing would arrange them: a block that is sent in the step
/// after it was made is stored in the message by the pass that makes it, and a block that is replaced before anybody
/// has read it is not stored at all.
class Counting final : public StepObserver {
 public:
  Counting(const Shape& shape, Access access, const std::vector<int>& hosts);
  void on_step(const Schedule& schedule, std::span<const Transfer> transfers, int times) override;
  std::vector<StepRun> runs();

 private:
  using Passes = StepWork::Passes;
  /// The pass that wrote a block last.
  struct Made {
    int step = -1;
    std::size_t passes = 0;  ///< index of its kind, see of_kind
    bool read = false;
  };
  struct Block {
    Made made;
    int job = -1;    ///< of this step, that writes it
    int copies = 0;  ///< how often this step sends it; windows only
  };
  /// All transfers of this step into one block.
  struct Job {
    Ref dst;
    bool is_far[distances] = {};
    int reads = 0;
  };

  void count(int step, std::span<const Transfer> transfers);
  void send(int step, const Transfer& transfer);
  void receive(int step, const Transfer& transfer);
  void finish(int step);
  void count_copies(std::span<const Transfer> transfers);
  bool receiver_makes(const Transfer& transfer) const;
  void forget_unread();

  std::size_t distance(Rank peer) const;
  StepWork& at(int step) { return steps_[static_cast<std::size_t>(step)]; }
  Passes& of_kind(int step, std::size_t kind) {
    return kind == distances ? at(step).local : at(step).with[kind].passes;
  }
  bool by_messages() const { return access_ == Access::slots; }

  const Shape& shape_;
  Access access_;
  const std::vector<int>& hosts_;
  Rank rank_;
  std::vector<StepWork> steps_;
  std::vector<int> times_;  // of each step
  BlockTable<Block> own_;
  std::vector<Job> jobs_;        // of this step
  std::vector<int> sent_, got_;  // blocks of this step, by peer; 0 between steps
  bool shares_ = false;          // this step sends some block to several ranks
};

Counting::Counting(const Shape& shape, Access access, const std::vector<int>& hosts)
    : shape_(shape),
      access_(access),
      hosts_(hosts),
      rank_(shape.only),
      sent_(static_cast<std::size_t>(shape.ranks)),
      got_(sent_.size()) {}

void Counting::on_step(const Schedule& /*schedule*/, std::span<const Transfer> transfers, int times) {
  steps_.emplace_back();
  times_.push_back(times);
  count(static_cast<int>(steps_.size()) - 1, transfers);
}

std::vector<StepRun> Counting::runs() {
  forget_unread();
  std::vector<StepRun> runs;
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    if (runs.empty() || runs.back().work != steps_[step]) runs.push_back({.work = steps_[step]});
    runs.back().times += times_[step];
  }
  return runs;
}

std::size_t Counting::distance(Rank peer) const {
  const auto host = [this](Rank rank) { return hosts_[static_cast<std::size_t>(rank)]; };
  return hosts_.empty() || host(peer) == host(rank_) ? 0 : 1;
}

void Counting::count(int step, std::span<const Transfer> transfers) {
  if (access_ == Access::mapped) count_copies(transfers);
  for (const Transfer& t : transfers) {
    if (t.from == rank_ && t.to != rank_ && !receiver_makes(t)) send(step, t);
    if (t.to == rank_ && (t.from == rank_ || by_messages() || receiver_makes(t))) receive(step, t);
  }
  for (const Transfer& t : transfers) {
    sent_[static_cast<std::size_t>(t.to)] = 0;
    got_[static_cast<std::size_t>(t.from)] = 0;
  }
  finish(step);
}

void Counting::count_copies(std::span<const Transfer> transfers) {
  shares_ = false;
  const auto sent = [this](const Transfer& t) { return t.from == rank_ && t.to != rank_; };
  for (const Transfer& t : transfers)
    if (sent(t)) shares_ = ++own_.at(t.src).copies > 1 || shares_;
  for (const Transfer& t : transfers)
    if (sent(t)) own_.at(t.src).copies = 0;
}

/// With slots, both ends copy. Of windows, as Jobs::choose_makers, by what is known of the peer: where there is no
/// root, it has as much to do as this rank, and does it in the same way.
bool Counting::receiver_makes(const Transfer& t) const {
  if (by_messages()) return false;
  if (access_ != Access::mapped || t.kind == Kind::reduce || t.dst.buffer == Buffer::scratch) return true;
  if (rooted(shape_.collective)) return t.from == shape_.root;
  return t.src.buffer == Buffer::input && !shares_;
}

void Counting::send(int step, const Transfer& t) {
  StepWork::Exchanged& with = at(step).with[distance(t.to)];
  if (sent_[static_cast<std::size_t>(t.to)]++ % limits::items_max == 0) ++with.messages_out;
  ++with.blocks_out;
  Made& made = own_.at(t.src).made;
  if (made.step >= 0 && made.step == step - 1)
    ++with.merged;
  else
    made.read = true;
}

void Counting::receive(int step, const Transfer& t) {
  Block& block = own_.at(t.dst);
  if (block.job < 0) {
    block.job = static_cast<int>(jobs_.size());
    jobs_.push_back({.dst = t.dst});
  }
  Job& job = jobs_[static_cast<std::size_t>(block.job)];
  if (t.from == rank_) {
    ++job.reads;
    own_.at(t.src).made.read = true;
    return;
  }
  const std::size_t kind = distance(t.from);
  StepWork::Exchanged& with = at(step).with[kind];
  if (got_[static_cast<std::size_t>(t.from)]++ % limits::items_max == 0) ++with.messages_in;
  ++with.blocks_in;
  with.waits = with.waits || t.src.buffer != Buffer::input;
  job.is_far[kind] = true;
}

/// Now that all that the step reads has been read, its results replace what was there.
void Counting::finish(int step) {
  for (const Job& job : jobs_) {
    const std::size_t kind = job.is_far[1] ? 1 : job.is_far[0] ? 0 : distances;
    Passes& passes = of_kind(step, kind);
    ++passes.count;
    passes.reads += job.reads;
    ++passes.writes;
    Block& block = own_.at(job.dst);
    Made& made = block.made;
    if (by_messages() && made.step >= 0 && !made.read) --of_kind(made.step, made.passes).writes;
    made = {.step = step, .passes = kind};
    block.job = -1;
  }
  jobs_.clear();
}

/// Scratch is of no use after the call.
void Counting::forget_unread() {
  for (const Block& block : own_.of(Buffer::scratch))
    if (block.made.step >= 0 && !block.made.read) --of_kind(block.made.step, block.made.passes).writes;
}

}  // namespace

RankWork work_of_rank(const Algorithm& algorithm, const Shape& shape, Access access, const std::vector<int>& hosts) {
  Counting counting(shape, access, hosts);
  Shape observed = shape;
  observed.observer = &counting;
  const Schedule schedule = algorithm.family->build(observed, algorithm.parameter);
  if (!schedule.transfers().empty()) counting.on_step(schedule, schedule.transfers(), 1);
  return {.runs = counting.runs(), .parts = schedule.parts(), .scratch_groups = schedule.scratch_groups()};
}

}  // namespace tutti
