#include "analysis/simulator/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "analysis/simulator/quantity.h"
#include "base/limits.h"
#include "base/printable.h"

namespace tutti::simulator {
namespace {

/// A description, split into its words.
struct Words {
  std::string kind;
  std::vector<int> sizes;
  // rates in bytes per ns, times in ns; a rate and a time without a name are "rate" and "time"
  std::map<std::string, double> values;

  double get(const std::string& name, double otherwise) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
};

struct Name {
  std::string_view name;
  std::string_view kinds;
  Result<double> (*parse)(std::string_view);
};
constexpr Name names[] = {
    {"efficiency", "switch nodes fattree torus", parse_number},
    {"in_switch", "switch nodes fattree", parse_rate},
    {"net", "nodes", parse_rate},
    {"net_latency", "nodes", parse_time},
    {"rails", "nodes", parse_number},
    {"pod", "nodes", parse_number},
    {"pod_latency", "nodes", parse_time},
    {"taper", "nodes fattree", parse_number},
    {"level_latency", "fattree", parse_time},
};
constexpr std::string_view kinds[] = {"switch", "nodes", "fattree", "torus"};

Result<std::vector<int>> parse_sizes(std::string_view word) {
  std::vector<int> sizes;
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find('x', begin), word.size());
    int size = 0;
    const auto [stop, problem] = std::from_chars(word.data() + begin, word.data() + end, size);
    if (problem != std::errc() || stop != word.data() + end || size < 1 || size > limits::ranks_max)
      return invalid_argument(fmt::format("\"{}\" are not sizes like 8x8", word));
    sizes.push_back(size);
    begin = end + 1;
  }
  return sizes;
}

Result<void> take_named(Words& words, std::string_view word, std::size_t equals) {
  const std::string name(word.substr(0, equals));
  std::string known;
  for (const Name& one : names) {
    if (one.kinds.find(words.kind) == std::string_view::npos) continue;
    known += fmt::format(" {}", one.name);
    if (one.name != name) continue;
    auto value = one.parse(word.substr(equals + 1));
    if (!value) return std::move(value).error().during(name);
    words.values[name] = *value;
    return {};
  }
  return invalid_argument(fmt::format("a {} has no \"{}\"; it has:{}", words.kind, name, known));
}

Result<void> take(Words& words, std::string_view word) {
  if (const std::size_t equals = word.find('='); equals != std::string_view::npos)
    return take_named(words, word, equals);
  const bool is_rate = word.ends_with("/s"), is_time = !is_rate && word.ends_with('s');
  if (!is_rate && !is_time)
    return invalid_argument(fmt::format("\"{}\" is neither a rate, a time nor name=value", word));
  auto value = TUTTI_TRY(is_rate ? parse_rate(word) : parse_time(word));
  if (!words.values.emplace(is_rate ? "rate" : "time", value).second)
    return invalid_argument(fmt::format("\"{}\": there is one {} already", word, is_rate ? "rate" : "time"));
  return {};
}

Result<Words> split(std::string_view spec) {
  Words words;
  const std::size_t colon = std::min(spec.find(':'), spec.size());
  words.kind = spec.substr(0, colon);
  if (std::ranges::find(kinds, words.kind) == std::end(kinds))
    return invalid_argument(fmt::format("there is no kind \"{}\"; there are: {}", words.kind, joined(kinds, " ")));
  for (std::size_t begin = colon + 1; begin < spec.size();) {
    const std::size_t end = std::min(spec.find(',', begin), spec.size());
    const std::string_view word = spec.substr(begin, end - begin);
    const bool is_size = begin == colon + 1 && !word.ends_with('s') && word.find('=') == std::string_view::npos;
    if (is_size)
      words.sizes = TUTTI_TRY(parse_sizes(word));
    else
      TUTTI_TRY(take(words, word));
    begin = end + 1;
  }
  return words;
}

Result<Words> with_ranks(Words words, int ranks) {
  if (words.kind == "switch" && words.sizes.empty() && ranks > 0) words.sizes = {ranks};
  if (words.sizes.empty())
    return invalid_argument(fmt::format("a {} needs sizes, as in {}:8x8", words.kind, words.kind));
  const std::size_t wanted = words.kind == "switch" ? 1 : words.kind == "nodes" ? 2 : 0;
  if (wanted > 0 && words.sizes.size() != wanted)
    return invalid_argument(fmt::format("a {} has {} sizes, not {}", words.kind, wanted, words.sizes.size()));
  long all = 1;
  for (const int size : words.sizes) all = std::min<long>(all * size, limits::ranks_max + 1L);
  if (all > limits::ranks_max) return invalid_argument(fmt::format("there are more than {} ranks", limits::ranks_max));
  if (ranks > 0 && all != ranks) return invalid_argument(fmt::format("there are {} ranks, not {}", all, ranks));
  for (const char* const name : {"rails", "pod"})
    if (const double value = words.get(name, 1);
        value < 1 || value > limits::ranks_max || value != static_cast<int>(value))
      return invalid_argument(fmt::format("{} is not a whole number of at least 1", name));
  if (const double share = words.get("efficiency", 1); share <= 0 || share > 1)
    return invalid_argument("efficiency is not above 0 and at most 1");
  if (words.get("taper", 1) <= 0) return invalid_argument("taper is not above 0");
  return words;
}

Result<std::vector<TreeLevel>> levels_of(const Words& words) {
  const double rate = words.get("rate", 100), time = words.get("time", 1000), taper = words.get("taper", 1);
  std::vector<TreeLevel> levels{{.size = words.sizes.back(), .bytes_per_ns = rate, .latency_ns = time}};
  if (words.kind == "nodes") {
    const int nodes = words.sizes[0], pod = static_cast<int>(words.get("pod", nodes));
    const double net = words.get("net", rate / 8), net_latency = words.get("net_latency", 5 * time);
    const int rails = static_cast<int>(words.get("rails", 1));
    if (nodes % pod != 0) return invalid_argument(fmt::format("pod={} does not divide {} nodes", pod, nodes));
    levels.push_back({.size = pod, .bytes_per_ns = net, .latency_ns = net_latency, .links = rails});
    if (pod < nodes)
      levels.push_back({.size = nodes / pod,
                        .bytes_per_ns = net * rails * pod / taper,
                        .latency_ns = words.get("pod_latency", net_latency * 1.5)});
  }
  if (words.kind == "fattree") {
    double below = rate;
    for (std::size_t i = words.sizes.size() - 1; i-- > 0;) {
      below *= levels.back().size / taper;
      const double latency = levels.back().latency_ns + words.get("level_latency", time);
      levels.push_back({.size = words.sizes[i], .bytes_per_ns = below, .latency_ns = latency});
    }
  }
  for (std::size_t i = 1; i < levels.size(); ++i)
    if (levels[i].latency_ns < levels[i - 1].latency_ns)
      return invalid_argument("a farther level has a smaller latency than a nearer one");
  for (TreeLevel& level : levels) level.bytes_per_ns *= words.get("efficiency", 1);
  return levels;
}

std::string text_of(const Machine& machine, const Words& words) {
  std::string text = fmt::format("{} of {}", words.kind, joined(words.sizes, "x"));
  if (machine.torus) {
    const Link& link = machine.torus->links()[0];
    return text + fmt::format(", {:.4g} GB/s, {:.4g} ns", link.bytes_per_ns, link.latency_ns);
  }
  for (const TreeLevel& level : machine.tree->tree_levels()) {
    text += fmt::format("{} {:.4g} GB/s, {:.4g} ns", &level == machine.tree->tree_levels().data() ? "," : "; above",
                        level.bytes_per_ns, level.latency_ns);
    if (level.links > 1) text += fmt::format(", {} links", level.links);
  }
  return text;
}

Result<Machine> build(const Words& words) {
  Machine machine;
  if (words.kind == "torus") {
    const Link link{.bytes_per_ns = words.get("rate", 100) * words.get("efficiency", 1),
                    .latency_ns = words.get("time", 1000)};
    machine.torus = std::make_shared<Torus>(words.sizes, link);
  } else {
    auto levels = TUTTI_TRY(levels_of(words));
    if (words.values.contains("in_switch")) machine.in_switch = levels.front().bytes_per_ns / words.get("in_switch", 1);
    machine.tree = std::make_shared<Tree>(std::move(levels));
  }
  machine.text = text_of(machine, words);
  return machine;
}

}  // namespace

Result<Machine> parse_machine(std::string_view spec, int ranks) {
  const auto doing = [&](Error error) { return std::move(error).during(fmt::format("topology \"{}\"", spec)); };
  auto words = split(spec);
  if (words) words = with_ranks(*std::move(words), ranks);
  if (!words) return doing(std::move(words).error());
  auto machine = build(*words);
  if (!machine) return doing(std::move(machine).error());
  return machine;
}

}  // namespace tutti::simulator
