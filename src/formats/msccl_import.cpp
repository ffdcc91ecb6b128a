// Converts an MSCCL XML file to a schedule.
#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

#include "formats/msccl_file.h"
#include "formats/plan_file.h"
#include "formats/source.h"

namespace tutti::formats {
namespace {

constexpr int copies = -1;  // channel of a position: not a thread block, but the copies of a gpu

std::string where(const FilePosition& position) {
  if (position.channel == copies)
    return fmt::format("line {}, gpu {}, copy {}", position.line, position.rank, position.step);
  return fmt::format("line {}, gpu {}, tb {}, step {}", position.line, position.rank, position.channel, position.step);
}

class Import {
 public:
  explicit Import(const MscclFile& file) : file_(file) {}
  Result<Imported> run();

 private:
  using Connection = std::tuple<Rank, Rank, int>;  // from, to, channel

  void list_steps();
  Result<void> check_chunks() const;
  Result<void> check_copies() const;
  Result<void> match();
  void connect();
  void emit_copies(Rank rank);
  void emit(Rank rank, int id);
  bool joins(const MscclStep& step, const MscclStep* before) const;
  std::vector<Move> moves(const MscclStep& step, Rank rank, int number);
  void move(std::vector<Move>& moves, std::vector<Cell> sources, Cell destination) const {
    moves.push_back({.sources = std::move(sources), .destination = destination});
  }
  Cell cell(Rank rank, Ref ref, int chunk) const { return program_.memory.cell(rank, ref.buffer, ref.block + chunk); }

  struct Step {
    const MscclStep& read;
    FilePosition position;
  };

  const MscclFile& file_;
  std::vector<Step> steps_;  // of all ranks, by number
  ChannelProgram program_;
  std::vector<std::vector<int>> first_;    // by rank and tb: number of its first step
  std::vector<Cell> outgoing_, incoming_;  // by step, over all ranks: first cell
  std::vector<int> partner_;               // by step: of a receive, the step that sends
  std::vector<int> instruction_;           // by step
  int last_copy_ = -1;                     // of the rank that is emitted: its instruction; -1: it has none
};

Result<Imported> Import::run() {
  Buffers buffers{.shape = file_.shape, .parts = file_.parts, .in_place = file_.in_place};
  for (const MscclGpu& gpu : file_.gpus) buffers.scratch_chunks.push_back(gpu.scratch_chunks);
  auto memory = TUTTI_TRY(Memory::of(buffers));
  program_ = {.name = file_.name,
              .bytes_min = file_.bytes_min,
              .bytes_max = file_.bytes_max,
              .buffers = std::move(buffers),
              .memory = std::move(memory),
              .where = where};
  TUTTI_TRY(check_copies());
  list_steps();
  TUTTI_TRY(check_chunks());
  outgoing_.assign(steps_.size(), Memory::none);
  incoming_ = outgoing_;
  partner_.assign(steps_.size(), -1);
  instruction_ = partner_;
  TUTTI_TRY(match());
  for (Rank rank = 0; rank < file_.shape.ranks; ++rank) {
    emit_copies(rank);
    for (std::size_t id = 0; id < file_.gpus[index(rank)].blocks.size(); ++id) emit(rank, static_cast<int>(id));
    program_.channels += static_cast<int>(file_.gpus[index(rank)].blocks.size());
  }
  connect();
  return to_schedule(std::move(program_));
}

void Import::list_steps() {
  for (Rank rank = 0; rank < file_.shape.ranks; ++rank) {
    const std::vector<MscclBlock>& blocks = file_.gpus[index(rank)].blocks;
    first_.emplace_back();
    for (int id = 0; id < static_cast<int>(blocks.size()); ++id) {
      first_.back().push_back(static_cast<int>(steps_.size()));
      int number = 0;
      for (const MscclStep& step : blocks[index(id)].steps)
        steps_.push_back({step, {.line = step.line, .rank = rank, .channel = id, .step = number++}});
    }
  }
}

/// Steps may wait for later steps in the file, so their instructions are known only at the end.
void Import::connect() {
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    const auto& [step, position] = steps_[at];
    std::vector<int>& after = program_.instructions[index(instruction_[at])].after;
    if (partner_[at] >= 0) after.push_back(instruction_[index(partner_[at])]);
    if (step.wait_block < 0) continue;
    int raised = first_[index(position.rank)][index(step.wait_block)] + step.wait_step;
    while (!steps_[index(raised)].read.waited_for) ++raised;
    after.push_back(instruction_[index(raised)]);
  }
}

Result<void> Import::check_copies() const {
  for (Rank rank = 0; rank < file_.shape.ranks; ++rank) {
    const std::vector<MscclCopy>& made = file_.gpus[index(rank)].copies;
    const int inputs = program_.memory.chunks(rank, Buffer::input),
              outputs = program_.memory.chunks(rank, Buffer::output);
    for (std::size_t number = 0; number < made.size(); ++number) {
      const MscclCopy& copy = made[number];
      std::string why;
      if (copy.from >= inputs)
        why = fmt::format("i_off {} is outside the input of {} chunks", copy.from, inputs);
      else if (copy.to >= outputs)
        why = fmt::format("o_off {} is outside the output of {} chunks", copy.to, outputs);
      if (!why.empty()) return refused(where({copy.line, rank, copies, static_cast<int>(number)}), why);
    }
  }
  return {};
}

/// Checks that chunks are inside their buffers, and that their total is within the limit.
Result<void> Import::check_chunks() const {
  long moved = 0;
  for (const Step& at : steps_) {
    const MscclStep& step = at.read;
    const Rank rank = at.position.rank;
    const auto outside = [&](const char* which, Ref ref) -> std::string {
      static constexpr std::string_view names[] = {"input", "output", "scratch"};
      const int chunks = program_.memory.chunks(rank, ref.buffer);
      if (ref.block <= chunks - step.count) return {};
      return fmt::format("{} {} with cnt {} is outside the {} of {} chunks", which, ref.block, step.count,
                         names[static_cast<int>(ref.buffer)], chunks);
    };
    std::string why;
    if (reads_own(step.type)) why = outside("srcoff", step.src);
    if (why.empty() && writes_own(step.type)) why = outside("dstoff", step.dst);
    if (why.empty() && reads_own(step.type) && writes_own(step.type) && step.src.buffer == step.dst.buffer &&
        step.src != step.dst && std::abs(step.src.block - step.dst.block) < step.count)
      why = "reads and writes chunks that overlap";
    moved += step.count;
    if (why.empty() && moved > moves_max) why = fmt::format("more than {} chunks are moved", moves_max);
    if (!why.empty()) return refused(where(at.position), why);
  }
  return {};
}

/// Matches the k-th send on a connection with the k-th receive.
Result<void> Import::match() {
  std::map<Connection, std::vector<std::size_t>> senders, receivers;  // numbers of steps
  for (std::size_t at = 0; at < steps_.size(); ++at) {
    const auto& [step, position] = steps_[at];
    const MscclBlock& block = file_.gpus[index(position.rank)].blocks[index(position.channel)];
    if (sends(step.type)) senders[{position.rank, block.send, block.channel}].push_back(at);
    if (receives(step.type)) receivers[{block.recv, position.rank, block.channel}].push_back(at);
  }
  const auto where_is = [this](std::size_t step) { return where(steps_[step].position); };
  for (const auto& [connection, ends] : receivers)
    if (const std::size_t sent = senders[connection].size(); sent < ends.size())
      return refused(where_is(ends[sent]),
                     fmt::format("receives from gpu {}, which has no matching send", std::get<0>(connection)));
  for (const auto& [connection, ends] : senders) {
    const std::vector<std::size_t>& takers = receivers[connection];
    if (takers.size() < ends.size())
      return refused(where_is(ends[takers.size()]),
                     fmt::format("sends to gpu {}, which has no matching receive", std::get<1>(connection)));
    for (std::size_t k = 0; k < ends.size(); ++k) {
      const int count = steps_[ends[k]].read.count, taken = steps_[takers[k]].read.count;
      if (count != taken)
        return refused(where_is(takers[k]),
                       fmt::format("receives {} chunks, and ({}) sends {}", taken, where_is(ends[k]), count));
      const Cell first = program_.memory.add(std::get<1>(connection), count);
      program_.in_flight.resize(index(program_.memory.size()));
      for (int chunk = 0; chunk < count; ++chunk) program_.in_flight[index(first + chunk)] = 1;
      outgoing_[ends[k]] = incoming_[takers[k]] = first;
      partner_[takers[k]] = static_cast<int>(ends[k]);
    }
  }
  return {};
}

/// The runtime makes one reduction of a sequence of `re` from one buffer into one chunk.
bool Import::joins(const MscclStep& step, const MscclStep* before) const {
  return before != nullptr && before->type == MscclType::re && step.type == MscclType::re && step.wait_block < 0 &&
         step.dst == before->dst && step.src.buffer == before->src.buffer && step.count == before->count;
}

/// A channel of its own, which ends before the first step of each thread block.
void Import::emit_copies(Rank rank) {
  const std::vector<MscclCopy>& made = file_.gpus[index(rank)].copies;
  last_copy_ = -1;
  if (made.empty()) return;
  for (std::size_t number = 0; number < made.size(); ++number) {
    program_.instructions.push_back(
        {.channel = program_.channels, .position = {made[number].line, rank, copies, static_cast<int>(number)}});
    move(program_.instructions.back().moves, {program_.memory.cell(rank, Buffer::input, made[number].from)},
         program_.memory.cell(rank, Buffer::output, made[number].to));
  }
  last_copy_ = static_cast<int>(program_.instructions.size()) - 1;
  ++program_.channels;
}

void Import::emit(Rank rank, int id) {
  const std::vector<MscclStep>& steps = file_.gpus[index(rank)].blocks[index(id)].steps;
  const MscclStep* before = nullptr;
  for (int number = 0; number < static_cast<int>(steps.size()); ++number) {
    const MscclStep& step = steps[index(number)];
    const int at = first_[index(rank)][index(id)] + number;
    if (joins(step, before)) {
      for (int chunk = 0; chunk < step.count; ++chunk)
        program_.instructions.back().moves[index(chunk)].sources.push_back(cell(rank, step.src, chunk));
    } else {
      std::vector<Move> made = moves(step, rank, at);
      program_.instructions.push_back(
          {.channel = program_.channels + id, .position = steps_[index(at)].position, .moves = std::move(made)});
      if (number == 0 && last_copy_ >= 0) program_.instructions.back().after.push_back(last_copy_);
    }
    instruction_[index(at)] = static_cast<int>(program_.instructions.size()) - 1;
    before = &step;
  }
}

std::vector<Move> Import::moves(const MscclStep& step, Rank rank, int number) {
  std::vector<Move> made;
  const Cell in = incoming_[index(number)], out = outgoing_[index(number)];
  // A sum that is only passed on still needs a cell.
  const Cell passing = step.type == MscclType::rrs ? program_.memory.add(rank, step.count) : Memory::none;
  for (int i = 0; i < step.count; ++i) {
    const Cell src = reads_own(step.type) ? cell(rank, step.src, i) : Memory::none;
    const Cell dst = writes_own(step.type) ? cell(rank, step.dst, i) : Memory::none;
    switch (step.type) {
      case MscclType::s: move(made, {src}, out + i); break;
      case MscclType::r: move(made, {in + i}, dst); break;
      case MscclType::rcs:
        move(made, {in + i}, dst);
        move(made, {dst}, out + i);
        break;
      case MscclType::rrs:
        move(made, {src, in + i}, passing + i);
        move(made, {passing + i}, out + i);
        break;
      case MscclType::rrc: move(made, {src, in + i}, dst); break;
      case MscclType::rrcs:
        move(made, {src, in + i}, dst);
        move(made, {dst}, out + i);
        break;
      case MscclType::cpy: move(made, {src}, dst); break;
      case MscclType::re: move(made, {dst, src}, dst); break;
      case MscclType::nop: break;
    }
  }
  return made;
}

}  // namespace

Result<Imported> import_msccl(std::string_view text, Rank root) {
  const auto file = TUTTI_TRY(parse_msccl(text, root));
  return Import(file).run();
}

}  // namespace tutti::formats
