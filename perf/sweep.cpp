#include "perf/sweep.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "perf/buffers.h"

namespace perf {
namespace {

/// tuttiCommExplain's prediction for one algorithm and one size.
struct Predicted {
  double us = 0;
  bool used = false;
};
using Predictions = std::map<std::string, Predicted>;

/// Parses lines like "* ring   12.30 µs  6  1234"; of two sections, takes the one for the kind of memory that is
/// measured.
Predictions read_explanation(std::string text, Buffers buffers) {
  const std::size_t second = text.find("\nOrdinary memory: ");
  if (second != std::string::npos) text = buffers == Buffers::tutti ? text.substr(0, second) : text.substr(second + 1);
  Predictions all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 3 || line.find(" µs") == std::string::npos) continue;
    std::istringstream words(line.substr(1));
    std::string name;
    Predicted predicted{.used = line[0] == '*'};
    if (words >> name >> predicted.us) all[name] = predicted;
  }
  return all;
}

struct Unmap {
  void operator()(Notebook* notebook) const { ::munmap(notebook, sizeof(Notebook)); }
};

std::unique_ptr<Notebook, Unmap> make_notebook() {
  void* const at = ::mmap(nullptr, sizeof(Notebook), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return std::unique_ptr<Notebook, Unmap>(at == MAP_FAILED ? nullptr : new (at) Notebook);
}

/// The sizes of one run and the predictions for each, from a communicator like those to be measured.
class Expectations {
 public:
  std::map<std::size_t, Predictions> by_count;

  int ask(const Description& description, const Options& options, Notebook& notebook) {
    const std::size_t element = type_of(options.types[0]).bytes;
    const int code = launch(options.launch, "explain", [&](Rank& rank) {
      if (!rank.is_first()) return Exit::ok;
      for (const std::size_t bytes : options.sizes()) {
        const std::size_t room = Notebook::text_max - notebook.text_bytes;
        std::size_t length = 0;
        const std::size_t count = count_for(description, bytes, element, rank.ranks);
        expect_success(tuttiCommExplain(rank.comm, std::string(description.name).c_str(), count, options.types[0],
                                        notebook.text + notebook.text_bytes, room, &length),
                       rank.comm, rank.rank, "tuttiCommExplain");
        if (length >= room) fail(rank.rank, "too many sizes for one run with --algo");
        notebook.text_bytes += length + 1;
      }
      return Exit::ok;
    });
    std::size_t at = 0;
    for (const std::size_t bytes : options.sizes()) {
      if (at >= notebook.text_bytes) break;
      const std::string text(notebook.text + at);
      at += text.size() + 1;
      by_count[count_for(description, bytes, element, options.launch.ranks())] =
          read_explanation(text, options.buffers);
    }
    return code;
  }

  /// The requested algorithms that can serve some size; all of these for "all".
  std::vector<std::string> names(const std::string& wanted) const {
    std::vector<std::string> listed;
    for (const auto& [count, predictions] : by_count)
      for (const auto& [name, predicted] : predictions)
        if (std::ranges::find(listed, name) == listed.end()) listed.push_back(name);
    if (wanted == "all") return listed;
    std::vector<std::string> named;
    std::istringstream words(wanted);
    for (std::string word; std::getline(words, word, ',');)
      for (const std::string& name : listed)
        if (name == word || name.starts_with(word + "/")) named.push_back(name);
    return named;
  }
};

using Results = std::map<std::size_t, std::vector<Notebook::Line>>;  // by count

void print(const Results& measured, const Expectations& expected) {
  for (auto [count, lines] : measured) {
    std::ranges::sort(lines, {}, &Notebook::Line::out_of_place_us);
    const Predictions& predictions = expected.by_count.at(count);
    fmt::print("#\n# {} bytes, {} elements; * is what is chosen\n# {:<28}  {:>12}  {:>12}  {:>12}  {:>9}  {}\n",
               lines[0].bytes, count, "algorithm", "out-of-place", "in-place", "predicted", "#wrong", "transport");
    for (const Notebook::Line& line : lines) {
      const auto known = predictions.find(line.algorithm);
      const bool used = known != predictions.end() && known->second.used;
      const auto us = [](double value) { return value < 0 ? std::string("N/A") : fmt::format("{:.2f} us", value); };
      fmt::print("{} {:<28}  {:>12}  {:>12}  {:>12}  {:>9}  {}\n", used ? '*' : ' ', line.algorithm,
                 us(line.out_of_place_us), us(line.in_place_us), us(known == predictions.end() ? -1 : known->second.us),
                 line.wrong, line.transport);
    }
  }
}

int write_csv(const Description& description, const Options& options, const Results& measured,
              const Expectations& expected) {
  std::FILE* const file = std::fopen(options.csv.c_str(), "w");
  if (file == nullptr) {
    fmt::print(stderr, "cannot write {}: {}\n", options.csv, std::strerror(errno));
    return Exit::failed;
  }
  fmt::print(file,
             "collective,transport,algorithm,ranks,bytes,time_us,algbw_gbps,busbw_gbps,wrong,in_place_us,predicted_us,"
             "chosen\n");
  const int ranks = options.launch.ranks();
  for (const auto& [count, lines] : measured)
    for (const Notebook::Line& line : lines) {
      const Predictions& predictions = expected.by_count.at(count);
      const auto known = predictions.find(line.algorithm);
      const double algbw = static_cast<double>(line.bytes) / line.out_of_place_us * 1e-3;
      fmt::print(file, "{},{},{},{},{},{:.4f},{:.6f},{:.6f},{},{:.4f},{:.4f},{}\n", description.name, line.transport,
                 line.algorithm, ranks, line.bytes, line.out_of_place_us, algbw, algbw * description.bus_factor(ranks),
                 line.wrong, line.in_place_us, known == predictions.end() ? -1 : known->second.us,
                 known != predictions.end() && known->second.used ? 1 : 0);
    }
  std::fclose(file);
  return Exit::ok;
}

void put(char* to, std::size_t room, const std::string& text) {
  const std::size_t taken = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), taken);
  to[taken] = '\0';
}

}  // namespace

void Notebook::add(const Row& row) {
  if (count == lines_max) return;
  Line& line = lines[count++];
  line.bytes = row.bytes;
  line.count = row.count;
  line.out_of_place_us = row.out_of_place.seconds * 1e6;
  line.in_place_us = row.in_place ? row.in_place->seconds * 1e6 : -1;
  line.wrong = row.out_of_place.wrong.value_or(0) + (row.in_place ? row.in_place->wrong.value_or(0) : 0);
  put(line.algorithm, sizeof line.algorithm, row.algorithm);
  put(line.transport, sizeof line.transport, row.transport);
}

int run_algorithms(const Description& description, const Options& options,
                   const std::function<int(Notebook& notebook)>& once) {
  const auto refuse = [&](std::string_view why) {
    fmt::print(stderr, "{}_perf: --algo {}: {}\n", description.name, options.algorithms, why);
    return static_cast<int>(Exit::bad_usage);
  };
  if (!options.launch.launcher().empty())
    return refuse("starts new ranks for each algorithm, which is impossible under a launcher");
  if (options.sizes().size() > Notebook::lines_max) return refuse("too many sizes");
  if (options.types.size() > 1 || options.ops.size() > 1) return refuse("works with one type and one operator only");
  const auto notebook = make_notebook();
  if (notebook == nullptr) return refuse("no memory to share");

  Expectations expected;
  if (const int code = expected.ask(description, options, *notebook); code != Exit::ok) return code;
  const auto names = expected.names(options.algorithms);
  if (names.empty()) return refuse("none of them can serve such calls");
  fmt::print("# tutti {}_perf by {} algorithms, {} ranks\n# {}\n", description.name, names.size(),
             options.launch.ranks(), options.describe());
  std::fflush(stdout);

  Results measured;
  std::size_t wrong = 0;
  for (const std::string& name : names) {
    ::setenv("TUTTI_ALGO", name.c_str(), 1);
    notebook->count = 0;
    if (const int code = once(*notebook); code > Exit::wrong_values) return code;
    for (std::size_t i = 0; i < notebook->count; ++i) {
      const Notebook::Line& line = notebook->lines[i];
      wrong += line.wrong;
      // For sizes that the algorithm cannot serve, another one was used.
      if (line.algorithm == name) measured[line.count].push_back(line);
    }
  }
  print(measured, expected);
  fmt::print("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  if (!options.csv.empty())
    if (const int code = write_csv(description, options, measured, expected); code != Exit::ok) return code;
  return wrong == 0 ? Exit::ok : Exit::wrong_values;
}

}  // namespace perf
