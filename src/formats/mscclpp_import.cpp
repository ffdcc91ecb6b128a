// Converts an MSCCL++ JSON plan to a schedule.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "formats/json.h"
#include "formats/mscclpp_import.h"
#include "formats/mscclpp_names.h"
#include "formats/plan_file.h"
#include "formats/source.h"

namespace tutti::formats {
namespace mscclpp {
namespace {

constexpr int shown_max = 40;

std::string where(const FilePosition& position) {
  return fmt::format("gpus[{}].threadblocks[{}].ops[{}]", position.rank, position.channel, position.step);
}

}  // namespace

Result<Imported> Import::run(const Json& root, Rank of_root) {
  program_.where = where;
  header({&root, ""}, of_root);
  if (reader_.failed()) return reader_.error();
  program_.memory = TUTTI_TRY(Memory::of(program_.buffers));
  for (Rank rank = 0; rank < program_.buffers.shape.ranks && !reader_.failed(); ++rank) blocks(rank);
  if (reader_.failed()) return reader_.error();
  TUTTI_TRY(match());
  TUTTI_TRY(join_barriers());
  return to_schedule(std::move(program_));
}

void Import::header(const JsonAt& file, Rank of_root) {
  Shape& shape = program_.buffers.shape;
  program_.name = std::string(reader_.text(reader_.member(file, "name")).substr(0, 200));
  const JsonAt coll = reader_.member(file, "collective");
  const std::string_view text = reader_.text(coll);
  const auto found = std::ranges::find(collectives, text, &std::pair<std::string_view, Collective>::first);
  if (found == std::end(collectives))
    reader_.refuse(coll,
                   fmt::format("\"{}\" is none of allreduce, allgather, reducescatter, reduce, broadcast, alltoall",
                               text.substr(0, shown_max)));
  else
    shape.collective = found->second;
  if (const JsonAt in_place = reader_.optional_member(file, "inplace"))
    program_.buffers.in_place = reader_.boolean(in_place);
  if (program_.buffers.in_place && shape.collective == Collective::all_to_all)
    reader_.refuse(file, "an alltoall in place, which a call never is: its input is copied first");

  if (const JsonAt least = reader_.optional_member(file, "min_message_size")) program_.bytes_min = reader_.size(least);
  if (const JsonAt most = reader_.optional_member(file, "max_message_size")) program_.bytes_max = reader_.size(most);
  const JsonAt gpus = reader_.member(file, "gpus");
  const std::vector<JsonAt> all = reader_.items(gpus);
  if (all.empty() || all.size() > index(ranks_max))
    reader_.refuse(gpus, fmt::format("{} gpus; there may be 1 … {}", all.size(), ranks_max));
  if (reader_.failed()) return;
  shape.ranks = static_cast<int>(all.size());
  shape.root = of_root;
  if (of_root < 0 || of_root >= shape.ranks)
    reader_.refuse(gpus, fmt::format("root {} is not one of 0 … {}", of_root, shape.ranks - 1));
  find_parts(gpus);
  for (Rank rank = 0; rank < shape.ranks && !reader_.failed(); ++rank) gpu(all[index(rank)], rank);
}

/// The buffers and the collective determine how many chunks one rank contributes or receives.
void Import::find_parts(const JsonAt& gpus) {
  int inputs = 0, outputs = 0;
  for (const JsonAt& at : reader_.items(gpus)) {
    inputs = std::max(inputs, reader_.number(reader_.member(at, "input_chunks"), 0, chunks_max));
    outputs = std::max(outputs, reader_.number(reader_.member(at, "output_chunks"), 0, chunks_max));
  }
  const Shape& shape = program_.buffers.shape;
  const auto share = [&](int chunks) {
    if (chunks % shape.ranks != 0)
      reader_.refuse(gpus, fmt::format("{} chunks are not a multiple of {} ranks", chunks, shape.ranks));
    return chunks / shape.ranks;
  };
  const CollectiveFacts& facts = facts_of(shape.collective);
  const bool spreads = facts.input_groups == GroupCount::one_per_rank,
             gathers = facts.output_groups == GroupCount::one_per_rank;
  int parts = std::max(inputs, outputs);
  if (spreads && gathers)
    parts = share(parts);
  else if (gathers)
    parts = outputs > 0 ? share(outputs) : inputs;
  else if (spreads)
    parts = inputs > 0 ? share(inputs) : outputs;
  if (parts == 0) reader_.refuse(gpus, "no gpu has chunks");
  program_.buffers.parts = std::max(1, parts);
}

void Import::gpu(const JsonAt& at, Rank rank) {
  Gpu gpu{.at = at};
  if (const JsonAt id = reader_.member(at, "id"); reader_.number(id, 0, ranks_max) != rank)
    reader_.refuse(id, fmt::format("this is gpu {}, and its id says otherwise", rank));
  program_.buffers.scratch_chunks.push_back(reader_.number(reader_.member(at, "scratch_chunks"), 0, chunks_max));
  channels(at, rank, gpu);
  for (const JsonAt& remote : reader_.optional_items(at, "remote_buffers")) {
    const JsonAt owner = reader_.member(remote, "rank");
    const Rank other = reader_.number(owner, 0, program_.buffers.shape.ranks - 1);
    if (other == rank) reader_.refuse(owner, "a remote buffer of the rank itself");
    gpu.remotes.push_back({.rank = other, .buffer = buffer(reader_.member(remote, "type"))});
  }
  gpus_.push_back(std::move(gpu));
}

void Import::channels(const JsonAt& at, Rank rank, Gpu& gpu) {
  std::map<std::pair<int, Rank>, int> number;
  for (const JsonAt& channel : reader_.optional_items(at, "channels")) {
    const int type = channel_type(reader_.member(channel, "channel_type"));
    if (type == switch_channel || reader_.failed()) continue;
    for (const JsonAt& to : reader_.items(reader_.member(channel, "connected_to"))) {
      const Rank peer = reader_.number(to, 0, program_.buffers.shape.ranks - 1);
      if (peer == rank) reader_.refuse(to, "a channel of a rank to itself");
      gpu.channels[index(type)].push_back({.peer = peer, .number = number[{type, peer}]++});
    }
  }
}

int Import::channel_type(const JsonAt& at) {
  const std::string_view type = reader_.text(at);
  if (type == "memory") return memory_channel;
  if (type == "port") return port_channel;
  if (type == "switch") return switch_channel;
  reader_.refuse(at, fmt::format("channel type \"{}\" is none of memory, port, switch", type.substr(0, shown_max)));
  return memory_channel;
}

Buffer Import::buffer(const JsonAt& at) {
  const std::string_view type = reader_.text(at);
  const std::size_t which = std::string_view("ios").find(type);
  if (type.size() == 1 && which != std::string_view::npos) return static_cast<Buffer>(which);
  reader_.refuse(at, fmt::format("buffer \"{}\" is none of i, o, s", type.substr(0, shown_max)));
  return Buffer::input;
}

void Import::blocks(Rank rank) {
  const Gpu& gpu = gpus_[index(rank)];
  int id = 0;
  for (const JsonAt& at : reader_.items(reader_.member(gpu.at, "threadblocks"))) {
    if (const JsonAt own = reader_.member(at, "id"); reader_.number(own, 0, channels_max) != id)
      reader_.refuse(own, fmt::format("this is thread block {}, and its id says otherwise", id));
    if (++program_.channels > channels_max) reader_.refuse(at, fmt::format("more than {} thread blocks", channels_max));
    const Block named = block(at, gpu);
    int step = 0;
    for (const JsonAt& one : reader_.items(reader_.member(at, "ops"))) {
      if (++steps_ > steps_max) reader_.refuse(one, fmt::format("more than {} operations", steps_max));
      if (reader_.failed()) return;
      program_.instructions.push_back(
          {.channel = program_.channels - 1, .position = {.rank = rank, .channel = id, .step = step++}});
      op(one, named);
    }
    ++id;
  }
}

Block Import::block(const JsonAt& at, const Gpu& gpu) {
  // Those of the GPU that a list of the block names by their numbers.
  const auto pick = [&](const char* list, const char* type_name, const char* ids, auto known_of, auto& named) {
    for (const JsonAt& one : reader_.optional_items(at, list)) {
      const int type = channel_type(reader_.member(one, type_name));
      if (type == switch_channel || reader_.failed()) continue;
      const auto& known = known_of(type);
      for (const JsonAt& id : reader_.items(reader_.member(one, ids))) {
        const int number = reader_.pick(id, known.size());
        if (!reader_.failed()) named[index(type)].push_back(known[index(number)]);
      }
    }
  };
  const auto channels_of = [&](int type) -> const auto& {
    return gpu.channels[index(type)];
  };
  const auto remotes_of = [&](int) -> const auto& {
    return gpu.remotes;
  };
  Block block;
  pick("channels", "channel_type", "channel_ids", channels_of, block.channels);
  pick("remote_buffer_refs", "access_channel_type", "remote_buffer_ids", remotes_of, block.remotes);
  return block;
}

void Import::op(const JsonAt& at, const Block& block) {
  const JsonAt name = reader_.member(at, "name");
  const std::string_view text = reader_.text(name);
  if (const auto other = std::ranges::find(not_understood, text, &std::pair<std::string_view, std::string_view>::first);
      other != std::end(not_understood))
    return reader_.refuse(
        at, fmt::format("\"{}\": {} are not supported, only plans of whole chunks in memory", text, other->second));
  const auto kind = std::ranges::find(kinds, text, &Kind::name);
  if (kind == std::end(kinds))
    return reader_.refuse(name, fmt::format("\"{}\" is not an operation", text.substr(0, shown_max)));
  if (const JsonAt group = reader_.optional_member(at, "tbg_info"))
    if (reader_.number(reader_.member(group, "tbg_size"), 1, chunks_max) > 1)
      return reader_.refuse(group, "thread-block groups are not supported, only plans of whole chunks");

  Instruction& made = program_.instructions.back();
  const int number = static_cast<int>(program_.instructions.size()) - 1;
  const JsonAt type_at = reader_.optional_member(at, "channel_type");
  const int type = type_at ? channel_type(type_at) : memory_channel;
  if (type == switch_channel) return reader_.refuse(type_at, "switch channels are not supported");
  if (kind->moves || kind->reduces) {
    Cells sources, destinations;
    for (const JsonAt& buffer : reader_.items(reader_.member(at, "src_buff")))
      sources.push_back(chunks(buffer, block, type));
    for (const JsonAt& buffer : reader_.items(reader_.member(at, "dst_buff")))
      destinations.push_back(chunks(buffer, block, type));
    if (reader_.failed()) return;
    if (kind->reduces)
      reductions(at, sources, destinations, made.moves);
    else
      copies(at, sources, destinations, made.moves);
  }
  if (kind->signals || kind->waits)
    for (const JsonAt& id : reader_.items(reader_.member(at, "channel_ids"))) {
      const std::vector<Channel>& known = block.channels[index(type)];
      const int which = reader_.pick(id, known.size());
      if (reader_.failed()) return;
      const Channel& channel = known[index(which)];
      if (kind->signals)
        signals_[{made.position.rank, channel.peer, type, channel.number}].push_back({number, kind->relaxed});
      else
        waits_[{channel.peer, made.position.rank, type, channel.number}].push_back({number, kind->relaxed});
    }
  if (kind->name == "barrier") barrier(at, made.position);
}

/// A list of cells; empty after an error.
std::vector<Cell> Import::chunks(const JsonAt& at, const Block& block, int type) {
  static constexpr std::string_view names[] = {"input", "output", "scratch"};
  Remote remote{.rank = program_.instructions.back().position.rank};
  const JsonAt own = reader_.optional_member(at, "type"), other = reader_.optional_member(at, "buffer_id");
  if (reader_.failed()) return {};
  if (reader_.optional_member(at, "switch_channel_id")) {
    reader_.refuse(at, "switch channels are not supported");
  } else if (own) {
    remote.buffer = buffer(own);
  } else if (other) {
    const std::vector<Remote>& known = block.remotes[index(type)];
    const int which = reader_.pick(other, known.size());
    if (!reader_.failed()) remote = known[index(which)];
  } else {
    reader_.refuse(at, "has neither \"type\" nor \"buffer_id\"");
  }
  const JsonAt index_at = reader_.member(at, "index");
  const int first = reader_.number(index_at, 0, chunks_max);
  const int size = reader_.number(reader_.member(at, "size"), 1, chunks_max);
  const int there = program_.memory.chunks(remote.rank, remote.buffer);
  if (first + size > there)
    reader_.refuse(index_at, fmt::format("{} with size {} is outside the {} of rank {}, which has {} chunks", first,
                                         size, names[static_cast<int>(remote.buffer)], remote.rank, there));
  moves_ += size;
  if (moves_ > moves_max) reader_.refuse(at, fmt::format("more than {} chunks are moved", moves_max));
  std::vector<Cell> cells;
  if (reader_.failed()) return cells;
  for (int chunk = 0; chunk < size; ++chunk)
    cells.push_back(program_.memory.cell(remote.rank, remote.buffer, first + chunk));
  return cells;
}

/// Copies the first source to the first destination, the second to the second, and so on.
void Import::copies(const JsonAt& at, const Cells& sources, const Cells& destinations, std::vector<Move>& moves) {
  if (sources.size() != destinations.size())
    return reader_.refuse(at, fmt::format("{} sources for {} destinations", sources.size(), destinations.size()));
  for (std::size_t pair = 0; pair < sources.size(); ++pair) {
    if (sources[pair].size() != destinations[pair].size())
      return reader_.refuse(at, fmt::format("a source of {} chunks for a destination of {}", sources[pair].size(),
                                            destinations[pair].size()));
    refuse_overlap(at, sources[pair], destinations[pair]);
    for (std::size_t i = 0; i < sources[pair].size(); ++i)
      moves.push_back({.sources = {sources[pair][i]}, .destination = destinations[pair][i]});
  }
}

/// Combines all sources into the first destination, and copies it to the others.
void Import::reductions(const JsonAt& at, const Cells& sources, const Cells& destinations, std::vector<Move>& moves) {
  if (sources.empty() || destinations.empty()) return reader_.refuse(at, "reduces nothing, or into nothing");
  const std::size_t size = destinations[0].size();
  for (const auto* const side : {&sources, &destinations})
    for (const std::vector<Cell>& cells : *side)
      if (cells.size() != size)
        return reader_.refuse(at, fmt::format("combines {} chunks with {}", size, cells.size()));
  for (const std::vector<Cell>& source : sources) refuse_overlap(at, source, destinations[0]);
  for (std::size_t i = 0; i < size; ++i) {
    std::vector<Cell> operands;
    for (const std::vector<Cell>& source : sources) operands.push_back(source[i]);
    moves.push_back({.sources = std::move(operands), .destination = destinations[0][i]});
    for (std::size_t other = 1; other < destinations.size(); ++other)
      moves.push_back({.sources = {destinations[0][i]}, .destination = destinations[other][i]});
  }
}

void Import::refuse_overlap(const JsonAt& at, const std::vector<Cell>& source, const std::vector<Cell>& destination) {
  std::map<Cell, std::size_t> position;
  for (std::size_t i = 0; i < source.size(); ++i) position[source[i]] = i;
  for (std::size_t i = 0; i < destination.size(); ++i)
    if (const auto found = position.find(destination[i]); found != position.end() && found->second != i)
      return reader_.refuse(at, "reads and writes chunks that overlap");
}

/// All of the rank's thread blocks that name the barrier arrive before any of them continues.
void Import::barrier(const JsonAt& at, FilePosition position) {
  const int id = reader_.number(reader_.member(at, "barrier_id"), 0, chunks_max);
  const JsonAt count_at = reader_.member(at, "num_threadblocks");
  const int count = reader_.number(count_at, 1, channels_max);
  const int channel = program_.channels - 1;
  Barrier& barrier = barriers_[{position.rank, id, passed_[{channel, id}]++}];
  if (barrier.expected != 0 && barrier.expected != count)
    reader_.refuse(count_at, fmt::format("{}, and another thread block says {}", count, barrier.expected));
  barrier.expected = count;
  barrier.entries.push_back(static_cast<int>(program_.instructions.size()) - 1);
  program_.instructions.push_back({.channel = channel, .position = position});
  barrier.exits.push_back(static_cast<int>(program_.instructions.size()) - 1);
}

Result<void> Import::match() {
  const auto at = [&](const Flag& flag) { return program_.where_of(flag.instruction); };
  for (auto* const side : {&signals_, &waits_})
    for (const auto& [wire, flags] : *side)
      for (const Flag& flag : flags)
        if (program_.instructions[index(flag.instruction)].channel !=
            program_.instructions[index(flags[0].instruction)].channel)
          return refused(at(flag),
                         fmt::format("uses a channel that ({}) uses too: two thread blocks at one end have no order",
                                     at(flags[0])));
  for (const auto& [wire, flags] : waits_)
    if (const std::size_t there = signals_[wire].size(); there < flags.size())
      return refused(at(flags[there]),
                     fmt::format("waits for a signal of rank {} that never comes", std::get<0>(wire)));
  for (const auto& [wire, flags] : signals_) {
    const std::vector<Flag>& takers = waits_[wire];
    if (takers.size() < flags.size())
      return refused(at(flags[takers.size()]),
                     fmt::format("signals rank {}, which never waits for it", std::get<1>(wire)));
    for (std::size_t k = 0; k < flags.size(); ++k) {
      Instruction& taker = program_.instructions[index(takers[k].instruction)];
      const bool relaxed = flags[k].relaxed || takers[k].relaxed;
      (relaxed ? taker.behind : taker.after).push_back(flags[k].instruction);
    }
  }
  return {};
}

/// Uses one extra channel, so that not every block waits for every other.
Result<void> Import::join_barriers() {
  for (const auto& [which, barrier] : barriers_) {
    if (barrier.entries.size() != index(barrier.expected))
      return refused(
          program_.where_of(barrier.entries[0]),
          fmt::format("the barrier is for {} thread blocks, and {} come", barrier.expected, barrier.entries.size()));
    const int hub = static_cast<int>(program_.instructions.size());
    const FilePosition position = program_.instructions[index(barrier.entries[0])].position;
    program_.instructions.push_back({.channel = program_.channels++, .position = position, .after = barrier.entries});
    for (const int exit : barrier.exits) program_.instructions[index(exit)].after.push_back(hub);
  }
  return {};
}

}  // namespace mscclpp

Result<Imported> import_mscclpp(std::string_view text, Rank root) {
  const auto file = TUTTI_TRY(parse_json(text));
  return mscclpp::Import().run(file, root);
}

}  // namespace tutti::formats
