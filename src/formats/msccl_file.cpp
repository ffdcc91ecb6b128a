#include "formats/msccl_file.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "base/file.h"
#include "formats/source.h"

namespace tutti::formats {
namespace {

constexpr std::string_view types[] = {"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"};
constexpr int text_shown_max = 40;

/// Reads numbers and words of elements. Keeps the first error and treats everything after it as correct, so that
/// callers need to check only once, at the end.
class Reader {
 public:
  explicit Reader(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at)
      if (text[at] == '\n') ends_.push_back(at);
  }

  bool failed() const { return !error_.empty(); }
  Error error() const { return Error{.code = Code::invalid_argument, .what = error_}; }
  int line(std::ptrdiff_t offset) const {
    return 1 + static_cast<int>(std::ranges::lower_bound(ends_, static_cast<std::size_t>(offset)) - ends_.begin());
  }
  int line(const pugi::xml_node& node) const { return line(node.offset_debug()); }

  void refuse(const pugi::xml_node& node, std::string_view why) { refuse(line(node), why); }
  void refuse(int line, std::string_view why) {
    if (!failed()) error_ = fmt::format("line {}{}: {}", line, context_, why);
  }
  /// Added to error messages after the line: ", gpu 0, tb 1".
  void inside(std::string context) { context_ = std::move(context); }

  /// A number in `low` … `high`; `low` after an error.
  int number(const pugi::xml_node& node, const char* name, int low, int high) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) {
      refuse(node, fmt::format("<{}> has no {}", node.name(), name));
      return low;
    }
    const std::string_view text = attribute.value();
    long long value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || code == std::errc::invalid_argument || end != text.data() + text.size()) {
      refuse(node, fmt::format("{} is \"{}\", not a number", name, text.substr(0, text_shown_max)));
    } else if (code != std::errc() || value < low || value > high) {
      refuse(node, fmt::format("{} {} is not one of {} … {}", name, text.substr(0, text_shown_max), low, high));
    } else {
      return static_cast<int>(value);
    }
    return low;
  }
  /// A size in bytes, at least 0.
  long long size_or(long long otherwise, const pugi::xml_node& node, const char* name) {
    const std::string_view text = node.attribute(name).value();
    if (text.empty()) return otherwise;
    long long value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc() && end == text.data() + text.size() && value >= 0) return value;
    refuse(node, fmt::format("{} is \"{}\", not a size", name, text.substr(0, text_shown_max)));
    return otherwise;
  }
  int number_or(int otherwise, const pugi::xml_node& node, const char* name, int low, int high) {
    return node.attribute(name) ? number(node, name, low, high) : otherwise;
  }

 private:
  std::vector<std::size_t> ends_;  // end positions of lines
  std::string context_;
  std::string error_;
};

/// Child elements of `node`; a name other than `name` and `other` is an error.
std::vector<pugi::xml_node> children(Reader& reader, const pugi::xml_node& node, std::string_view name,
                                     std::string_view other = {}) {
  std::vector<pugi::xml_node> found;
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() != pugi::node_element) continue;
    if (child.name() == name || child.name() == other)
      found.push_back(child);
    else
      reader.refuse(child, fmt::format("<{}> inside <{}>, where only <{}>{} belong{}",
                                       std::string_view(child.name()).substr(0, text_shown_max), node.name(), name,
                                       other.empty() ? "" : fmt::format(" and <{}>", other), other.empty() ? "s" : ""));
  }
  return found;
}

class Parser {
 public:
  Parser(std::string_view text, Rank root) : text_(text), reader_(text), root_(root) {}
  Result<MscclFile> parse();

 private:
  void algo(const pugi::xml_node& node);
  void gpu(const pugi::xml_node& node);
  void block(const pugi::xml_node& node, Rank rank, int id, MscclGpu& gpu);
  MscclStep step(const pugi::xml_node& node, int id);
  Ref ref(const pugi::xml_node& node, const char* buffer, const char* offset);
  void check_peers(const MscclGpu& gpu);
  void check_waits(const MscclGpu& gpu, Rank rank);

  std::string_view text_;
  Reader reader_;
  Rank root_;
  MscclFile file_;
  int blocks_ = 0;
  int steps_ = 0;
  std::set<Rank> seen_;
};

Result<MscclFile> Parser::parse() {
  const auto refused = [](int line, std::string_view why) {
    return formats::refused(fmt::format("line {}", line), why);
  };
  if (text_.size() > file_bytes_max)
    return refused(1, fmt::format("the file is larger than {} MiB", file_bytes_max >> 20));
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed)
    return refused(reader_.line(parsed.offset),
                   fmt::format("not XML: {} (byte {})", parsed.description(), parsed.offset));
  const pugi::xml_node root = document.document_element();
  if (!root || std::string_view(root.name()) != "algo")
    return refused(root ? reader_.line(root) : 1, "the file is not an <algo>");
  algo(root);
  for (const pugi::xml_node& node : children(reader_, root, "gpu")) {
    if (reader_.failed()) break;
    gpu(node);
  }
  reader_.inside("");
  for (Rank rank = 0; rank < file_.shape.ranks && !reader_.failed(); ++rank)
    if (!seen_.contains(rank)) reader_.refuse(root, fmt::format("there is no <gpu> with id {}", rank));
  if (reader_.failed()) return reader_.error();
  return std::move(file_);
}

void Parser::algo(const pugi::xml_node& node) {
  file_.name = std::string(std::string_view(node.attribute("name").value()).substr(0, 200));
  Shape& shape = file_.shape;
  const std::string_view coll = node.attribute("coll").value();
  const auto found = std::ranges::find(collectives, coll, &std::pair<std::string_view, Collective>::first);
  if (found == std::end(collectives))
    reader_.refuse(node, fmt::format("coll \"{}\" is none of allreduce, allgather, reduce_scatter, reduce, broadcast, "
                                     "alltoall",
                                     coll.substr(0, text_shown_max)));
  else
    shape.collective = found->second;
  shape.ranks = reader_.number(node, "ngpus", 1, ranks_max);
  shape.root = reader_.number_or(root_, node, "root", 0, shape.ranks - 1);
  if (shape.root < 0 || shape.root >= shape.ranks)
    reader_.refuse(node, fmt::format("root {} is not one of 0 … {}", shape.root, shape.ranks - 1));

  const int chunks = reader_.number(node, "nchunksperloop", 1, chunks_max);
  const bool per_rank = shape.collective == Collective::all_gather || shape.collective == Collective::reduce_scatter ||
                        shape.collective == Collective::all_to_all;
  if (per_rank && chunks % shape.ranks != 0)
    reader_.refuse(
        node, fmt::format("nchunksperloop {} is not a multiple of ngpus {}, as {} needs", chunks, shape.ranks, coll));
  file_.parts = std::max(1, per_rank ? chunks / shape.ranks : chunks);
  const bool in_place = reader_.number_or(0, node, "inplace", 0, 1) == 1;
  file_.in_place = in_place && reader_.number_or(0, node, "outofplace", 0, 1) == 0;
  if (file_.in_place && shape.collective == Collective::all_to_all)
    reader_.refuse(node, "an alltoall in place, which a call never is: its input is copied first");
  file_.bytes_min = reader_.size_or(0, node, "minBytes");
  file_.bytes_max = reader_.size_or(file_.bytes_max, node, "maxBytes");
  file_.gpus.resize(static_cast<std::size_t>(shape.ranks));
}

void Parser::gpu(const pugi::xml_node& node) {
  reader_.inside("");
  const Rank rank = reader_.number(node, "id", 0, file_.shape.ranks - 1);
  reader_.inside(fmt::format(", gpu {}", rank));
  if (!seen_.insert(rank).second) reader_.refuse(node, "a second <gpu> with this id");
  MscclGpu& gpu = file_.gpus[static_cast<std::size_t>(rank)];
  reader_.number_or(0, node, "i_chunks", 0, chunks_max);
  reader_.number_or(0, node, "o_chunks", 0, chunks_max);
  gpu.scratch_chunks = reader_.number_or(0, node, "s_chunks", 0, chunks_max);
  for (const pugi::xml_node& child : children(reader_, node, "tb", "copy")) {
    if (reader_.failed()) return;
    reader_.inside(fmt::format(", gpu {}", rank));
    if (std::string_view(child.name()) == "copy") {
      if (++steps_ > steps_max) reader_.refuse(child, fmt::format("more than {} steps", steps_max));
      gpu.copies.push_back({.line = reader_.line(child),
                            .from = reader_.number(child, "i_off", 0, INT_MAX / 2),
                            .to = reader_.number(child, "o_off", 0, INT_MAX / 2)});
      continue;
    }
    const int id = static_cast<int>(gpu.blocks.size());
    if (reader_.number(child, "id", 0, channels_max) != id)
      reader_.refuse(child, fmt::format("this <tb> is number {}, and its id says otherwise", id));
    if (++blocks_ > channels_max) reader_.refuse(child, fmt::format("more than {} thread blocks", channels_max));
    if (!reader_.failed()) block(child, rank, id, gpu);
  }
  reader_.inside(fmt::format(", gpu {}", rank));
  check_peers(gpu);
  check_waits(gpu, rank);
}

void Parser::block(const pugi::xml_node& node, Rank rank, int id, MscclGpu& gpu) {
  reader_.inside(fmt::format(", gpu {}, tb {}", rank, id));
  MscclBlock block{.line = reader_.line(node)};
  block.send = reader_.number(node, "send", -1, file_.shape.ranks - 1);
  block.recv = reader_.number(node, "recv", -1, file_.shape.ranks - 1);
  block.channel = reader_.number(node, "chan", 0, chunks_max);
  if (block.send == rank || block.recv == rank) reader_.refuse(node, "the peer is the rank itself");
  for (const pugi::xml_node& child : children(reader_, node, "step")) {
    if (reader_.failed()) return;
    const int number = static_cast<int>(block.steps.size());
    reader_.inside(fmt::format(", gpu {}, tb {}, step {}", rank, id, number));
    if (++steps_ > steps_max) reader_.refuse(child, fmt::format("more than {} steps", steps_max));
    block.steps.push_back(step(child, number));
    const MscclType type = block.steps.back().type;
    if (sends(type) && block.send < 0) reader_.refuse(child, "sends, and its tb has no peer to send to");
    if (receives(type) && block.recv < 0) reader_.refuse(child, "receives, and its tb has no peer to receive from");
  }
  gpu.blocks.push_back(std::move(block));
}

MscclStep Parser::step(const pugi::xml_node& node, int id) {
  MscclStep step{.line = reader_.line(node)};
  if (reader_.number(node, "s", 0, steps_max) != id)
    reader_.refuse(node, fmt::format("s contradicts the order: this is step {}", id));
  const std::string_view type = node.attribute("type").value();
  const auto found = std::ranges::find(types, type);
  if (found == std::end(types))
    reader_.refuse(node, fmt::format("type \"{}\" is none of s, r, rcs, rrs, rrc, rrcs, cpy, re, nop",
                                     type.substr(0, text_shown_max)));
  else
    step.type = static_cast<MscclType>(found - std::begin(types));
  if (reads_own(step.type)) step.src = ref(node, "srcbuf", "srcoff");
  if (writes_own(step.type)) step.dst = ref(node, "dstbuf", "dstoff");
  if (step.type != MscclType::nop) step.count = reader_.number(node, "cnt", 1, chunks_max);
  step.wait_block = reader_.number_or(-1, node, "depid", -1, channels_max);
  step.wait_step = reader_.number_or(-1, node, "deps", -1, steps_max);
  step.waited_for = reader_.number_or(0, node, "hasdep", 0, 1) == 1;
  if ((step.wait_block < 0) != (step.wait_step < 0))
    reader_.refuse(node, "one of depid and deps is -1, the other is not");
  return step;
}

Ref Parser::ref(const pugi::xml_node& node, const char* buffer, const char* offset) {
  const std::string_view text = node.attribute(buffer).value();
  const std::size_t which = std::string_view("ios").find(text);
  if (text.size() != 1 || which == std::string_view::npos)
    reader_.refuse(node, fmt::format("{} is \"{}\", none of i, o, s", buffer, text.substr(0, text_shown_max)));
  return {static_cast<Buffer>(std::min<std::size_t>(which, 2)), reader_.number(node, offset, 0, INT_MAX / 2)};
}

/// Two thread blocks at one end of a connection would be unordered.
void Parser::check_peers(const MscclGpu& gpu) {
  std::map<std::pair<Rank, int>, std::size_t> senders, receivers;
  for (std::size_t id = 0; id < gpu.blocks.size(); ++id) {
    const MscclBlock& block = gpu.blocks[id];
    for (auto [peer, ends, verb] :
         {std::tuple(block.send, &senders, "send to"), {block.recv, &receivers, "receive from"}}) {
      if (peer < 0) continue;
      const auto [other, is_new] = ends->try_emplace({peer, block.channel}, id);
      if (!is_new)
        reader_.refuse(block.line, fmt::format("tb {} and tb {} both {} gpu {} on channel {}", other->second, id, verb,
                                               peer, block.channel));
    }
  }
}

void Parser::check_waits(const MscclGpu& gpu, Rank rank) {
  for (std::size_t id = 0; id < gpu.blocks.size(); ++id)
    for (std::size_t number = 0; number < gpu.blocks[id].steps.size() && !reader_.failed(); ++number) {
      const MscclStep& step = gpu.blocks[id].steps[number];
      if (step.wait_block < 0) continue;
      reader_.inside(fmt::format(", gpu {}, tb {}, step {}", rank, id, number));
      if (step.wait_block >= static_cast<int>(gpu.blocks.size())) {
        reader_.refuse(step.line, fmt::format("depid {}: there is no such tb", step.wait_block));
        continue;
      }
      const std::vector<MscclStep>& others = gpu.blocks[static_cast<std::size_t>(step.wait_block)].steps;
      if (step.wait_step >= static_cast<int>(others.size())) {
        reader_.refuse(step.line,
                       fmt::format("deps {}: tb {} has {} steps", step.wait_step, step.wait_block, others.size()));
        continue;
      }
      // A later step that raises the flag is sufficient: flags only increase.
      if (std::none_of(others.begin() + step.wait_step, others.end(), [](const MscclStep& s) { return s.waited_for; }))
        reader_.refuse(step.line, fmt::format("waits forever: tb {} has no hasdep at step {} or later", step.wait_block,
                                              step.wait_step));
    }
}

}  // namespace

Result<MscclFile> parse_msccl(std::string_view text, Rank root) {
  return Parser(text, root).parse();
}

}  // namespace tutti::formats
