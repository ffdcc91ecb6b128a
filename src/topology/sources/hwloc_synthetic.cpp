// Checks descriptions of synthetic machines before hwloc reads them.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "topology/sources/hwloc_library.h"

namespace tutti::topology {
namespace {

constexpr std::string_view digits = "0123456789";
constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view word_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
constexpr std::string_view index_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789,:*";
constexpr long long arity_max = 4096;
constexpr long long objects_max = 65536;
constexpr std::size_t levels_max = 32;

using Type = hwloc::ObjectType;

bool is_level(const HwlocLibrary& hwloc, Type type) {
  return type == Type::package || type == Type::die || type == Type::core || type == Type::pu ||
         type == Type::numa_node || type == Type::group || hwloc.obj_type_is_cache(type) != 0;
}

/// The type that hwloc understands by the word; nothing if it cannot be a level.
std::optional<Type> type_of(const HwlocLibrary& hwloc, std::string_view word) {
  Type type = Type::machine;
  if (word.empty() || hwloc.type_sscanf(std::string(word).c_str(), &type, nullptr, 0) != 0 || !is_level(hwloc, type))
    return {};
  return type;
}

class Reader {
 public:
  Reader(const HwlocLibrary& hwloc, std::string_view text) : hwloc_(hwloc), text_(text) {}

  Result<void> read() {
    if (next_is('(')) TUTTI_TRY(attributes({}, root_));
    for (skip_spaces(); at_ < text_.size(); skip_spaces()) TUTTI_TRY(text_[at_] == '[' ? attached() : level());
    TUTTI_TRY(together());
    for (const auto& level : levels_) TUTTI_TRY(indexes(level));
    TUTTI_TRY(indexes(attached_));
    return indexes(root_);
  }

 private:
  /// Objects of one kind: their number, and their system numbers.
  struct Level {
    std::optional<Type> type;
    long long objects = 0;
    std::size_t at = 0;
    std::string_view indexes;
    std::size_t indexes_at = 0;
  };

  Error refused(std::size_t at, std::string_view why) const {
    return {.code = Code::invalid_argument,
            .what = fmt::format("synthetic machine \"{}\": character {}: {}", text_.substr(0, 80), at + 1, why)};
  }

  bool next_is(char wanted) const { return at_ < text_.size() && text_[at_] == wanted; }
  void skip_spaces() {
    while (next_is(' ')) ++at_;
  }
  std::string_view take(std::string_view allowed) {
    const std::size_t end = std::min(text_.find_first_not_of(allowed, at_), text_.size());
    const auto taken = text_.substr(at_, end - at_);
    at_ = end;
    return taken;
  }
  /// A plain decimal number: not octal, without a sign.
  std::optional<long long> number(long long least, long long most) {
    const auto word = take(digits);
    long long value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || value < least || value > most || (word.size() > 1 && word[0] == '0')) return {};
    return value;
  }

  /// "[numa(memory=1GB)]": a NUMA node for each object of the level before.
  Result<void> attached() {
    const std::size_t began = at_++;
    const auto word = take(letters);
    if (type_of(hwloc_, word) != Type::numa_node) return refused(began, "brackets hold no NUMA node");
    attached_.type = Type::numa_node;
    attached_.at = began;
    attached_.objects += levels_.empty() ? 1 : levels_.back().objects;
    if (attached_.objects > objects_max) return refused(began, fmt::format("more than {} NUMA nodes", objects_max));
    if (next_is('(')) TUTTI_TRY(attributes(attached_.type, attached_));
    if (!next_is(']')) return refused(began, "a bracket that is not closed");
    ++at_;
    return {};
  }

  /// "core:4(indexes=…)", or a number alone.
  Result<void> level() {
    Level level{.at = at_};
    if (digits.find(text_[at_]) == std::string_view::npos) {
      const auto word = take(word_characters);
      level.type = type_of(hwloc_, word);
      if (!level.type) return refused(level.at, "no kind of object that has CPUs");
      if (!next_is(':')) return refused(at_, "no number of objects after the kind");
      ++at_;
    }
    const std::size_t number_at = at_;
    const auto arity = number(1, arity_max);
    if (!arity) return refused(number_at, fmt::format("no number of 1 … {}", arity_max));
    level.objects = *arity * (levels_.empty() ? 1 : levels_.back().objects);
    if (level.objects > objects_max || levels_.size() == levels_max)
      return refused(level.at, fmt::format("more than {} objects, or {} levels", objects_max, levels_max));
    if (next_is('(')) {
      TUTTI_TRY(attributes(level.type, level));
    } else if (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '[') {
      return refused(at_, "neither a space nor attributes after a number");
    }
    levels_.push_back(level);
    return {};
  }

  /// "(memory=1GB indexes=0,2)", for caches "size" in place of "memory"; indexes go to `of`.
  Result<void> attributes(std::optional<Type> type, Level& of) {
    const std::size_t began = at_++;
    const bool cache = type && hwloc_.obj_type_is_cache(*type) != 0;
    while (!next_is(')')) {
      const std::size_t name_at = at_;
      const auto name = take(letters);
      if (!next_is('=')) return refused(began, "attributes that are not closed, or without a value");
      ++at_;
      if (name == (cache ? "size" : "memory")) {
        if (!bytes()) return refused(name_at, "not an amount of memory, as in 512MB");
      } else if (name == "indexes") {
        of.indexes_at = at_;
        of.indexes = take(index_characters);
        if (of.indexes.empty()) return refused(name_at, "no indexes");
      } else {
        return refused(name_at, fmt::format("not an attribute of this: {}", name));
      }
      if (next_is(' ')) {
        ++at_;
      } else if (!next_is(')')) {
        return refused(at_, "neither a space nor the end of the attributes");
      }
    }
    ++at_;
    return {};
  }

  bool bytes() {
    if (!number(0, 1LL << 60)) return false;
    std::string unit(take(letters));
    for (char& c : unit) c = static_cast<char>(c | 0x20);
    constexpr std::string_view units[] = {"", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"};
    return std::find(std::begin(units), std::end(units), unit) != std::end(units);
  }

  /// Checks hwloc's requirements on all levels together; hwloc leaks memory if they are not met.
  Result<void> together() const {
    if (levels_.empty()) return refused(text_.size(), "no CPUs");
    const auto& last = levels_.back();
    if (last.type && last.type != Type::pu) return refused(last.at, "the last level must be one of CPUs, as in pu:2");
    std::size_t without_type = 0;
    for (const auto& level : levels_) {
      if (&level == &last) break;
      if (!level.type) ++without_type;
      const auto same = [&](const Level& other) { return other.type == level.type; };
      const bool often = !level.type || level.type == Type::group || hwloc_.obj_type_is_cache(*level.type) != 0;
      if (level.type == Type::pu || (!often && std::count_if(levels_.begin(), levels_.end(), same) > 1))
        return refused(level.at, "there may be one such level alone, that of CPUs at the end");
      if (level.type == Type::numa_node && attached_.type)
        return refused(attached_.at, "NUMA nodes both as a level and in brackets");
    }
    if (without_type != 0 && without_type != levels_.size() - 1)
      return refused(last.at, "levels with and without a kind");
    return {};
  }

  /// Whether the word names a level that is not below a level with this many objects.
  bool above(std::string_view word, long long objects) const {
    const auto type = type_of(hwloc_, word);
    // The group that a number refers to is determined later.
    if (!type || (type == Type::group && digits.find(word.back()) != std::string_view::npos)) return false;
    bool found = false;
    for (const auto& level : levels_) {
      const bool cpus = type == Type::pu && &level == &levels_.back();
      if (level.type != type && !cpus) continue;
      if (level.objects > objects) return false;
      found = true;
    }
    return found;
  }

  /// "2,0,1", "2*4:1*2" or "core:pu": hwloc loops over the objects that each part names.
  Result<void> indexes(const Level& level) const {
    if (level.indexes.empty()) return {};
    Reader part(hwloc_, text_.substr(0, level.indexes_at + level.indexes.size()));
    part.at_ = level.indexes_at;
    const bool listed = level.indexes.find_first_not_of("0123456789,") == std::string_view::npos;
    const bool loops = !listed && digits.find(level.indexes[0]) != std::string_view::npos;
    long long product = 1;
    for (;; ++part.at_) {
      const std::size_t began = part.at_;
      if (listed) {
        if (!part.number(0, objects_max)) return refused(began, "no index");
      } else if (loops) {
        const auto step = part.number(1, objects_max);
        if (!step || !part.next_is('*')) return refused(began, "no loop, as in 2*4");
        ++part.at_;
        const auto count = part.number(1, objects_max);
        product *= count.value_or(objects_max + 1);
        if (product > objects_max) return refused(began, "no loop, as in 2*4");
      } else if (!above(part.take(word_characters), level.objects)) {
        return refused(began, "indexes go through a level that is not named, or is below");
      }
      if (part.at_ == part.text_.size()) return {};
      if (!part.next_is(listed ? ',' : ':')) return refused(part.at_, "no separator between indexes");
    }
  }

  const HwlocLibrary& hwloc_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Level> levels_;
  Level attached_;
  Level root_{.objects = 1};
};

}  // namespace

Result<void> check_synthetic(const HwlocLibrary& hwloc, std::string_view text) {
  if (text.empty() || text.size() > 1024)
    return Error{.code = Code::invalid_argument, .what = "synthetic machine: a description has 1 to 1024 characters"};
  return Reader(hwloc, text).read();
}

}  // namespace tutti::topology
