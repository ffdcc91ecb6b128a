#include "tools/tutti_plan/source.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <optional>

#include "base/file.h"
#include "choice/choice.h"
#include "formats/plan_file.h"
#include "formats/source.h"
#include "tools/tutti_plan/command.h"

namespace tutti::tool {
namespace {

std::string plain(std::string_view word) {
  std::string result;
  for (const char c : word)
    if (c != '_' && c != '-') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::optional<Collective> known_collective(std::string_view word) {
  for (int i = 0; i < collective_count; ++i)
    if (plain(name(static_cast<Collective>(i))) == plain(word)) return static_cast<Collective>(i);
  return {};
}

Error invalid(std::string what) {
  return Error{.code = Code::invalid_argument, .what = std::move(what)};
}

Result<const Algorithm*> algorithm_of(const Source& source, const Shape& shape) {
  if (source.algo.empty()) return &usual_algorithm(shape);
  if (const Algorithm* found = find_algorithm(source.algo, shape)) return found;
  std::string names;
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.supports(shape)) names += fmt::format(" {}", algorithm.name);
  return invalid(fmt::format("no algorithm \"{}\" for {} of {} ranks; there are:{}", source.algo,
                             name(shape.collective), shape.ranks, names));
}

Result<Found> built(const Source& source, Collective collective) {
  const Shape shape{.collective = collective, .ranks = source.ranks, .root = source.root};
  if (shape.root >= shape.ranks)
    return invalid(fmt::format("root {} is not one of 0 … {}", shape.root, shape.ranks - 1));
  const auto algorithm = algorithm_of(source, shape);
  if (!algorithm) return Error(algorithm.error());
  Schedule schedule = (*algorithm)->build(shape);
  auto meaning = verify(schedule);
  if (!meaning) return std::move(meaning).error();
  return Found{(*algorithm)->name, std::move(schedule), *std::move(meaning)};
}

}  // namespace

const Algorithm& usual_algorithm(const Shape& shape) {
  constexpr std::size_t bytes = 1 << 20;
  return Envelopes().of(shape, Access::slots, "", Machine{}, {.cores = shape.ranks})->at(bytes);
}

void add_source(CLI::App& command, Source& source) {
  command
      .add_option("source", source.name, "A collective (all_reduce, broadcast, …), or a file: MSCCL XML, MSCCL++ JSON")
      ->required();
  command.add_option("--algo", source.algo, "Algorithm; see tutti-plan list [what a call of 1 MiB through slots uses]");
  command.add_option("--ranks", source.ranks, "How many ranks [4]")->check(CLI::Range(1, formats::ranks_max));
  command.add_option("--root", source.root, "Root of a broadcast, reduce, gather or scatter [0]")
      ->check(CLI::Range(0, formats::ranks_max - 1));
}

Result<Found> find(const Source& source) {
  if (const auto collective = known_collective(source.name)) return built(source, *collective);
  auto imported = import_file(source.name, source.root);
  if (!imported) return std::move(imported).error();
  auto meaning = formats::verify(*imported);
  if (!meaning) return std::move(meaning).error().during(source.name);
  std::string title = imported->name.empty() ? source.name : imported->name;
  return Found{std::move(title), std::move(imported->schedule), *std::move(meaning)};
}

Result<formats::Imported> import_file(const std::string& path, Rank root) {
  const auto text = read_file(path, file_bytes_max, FileKind::stream);
  if (!text) return Error(text.error());
  auto imported = formats::import_plan(*text, root);
  if (!imported) return std::move(imported).error().during(path);
  return imported;
}

Result<Collective> collective_of(std::string_view name) {
  if (const auto known = known_collective(name)) return *known;
  return invalid(fmt::format("no collective \"{}\"", name));
}

Result<Access> access_of(std::string_view word) {
  for (const Access access : {Access::in_line, Access::mapped, Access::cma, Access::slots})
    if (name(access) == word) return access;
  return Error{.code = Code::invalid_argument, .what = fmt::format("no reach \"{}\"", word)};
}

int fail(const Error& error) {
  fmt::print(stderr, "tutti-plan: {}\n", error.text());
  return Exit::refused;
}

int put(const std::string& path, std::string_view text) {
  if (path != "-") {
    const auto written = write_file(path, text, FileKind::stream);
    return written ? Exit::ok : fail(written.error());
  }
  const bool good = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return good ? Exit::ok : fail(Error{.code = Code::system, .what = "write to standard output", .sys_errno = errno});
}

}  // namespace tutti::tool
