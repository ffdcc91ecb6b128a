// tutti-topo: prints the machine as a matrix and a tree, with suitable rings and trees, or a job. See docs/topology.md.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "analysis/pictures/job_picture.h"
#include "analysis/pictures/picture.h"
#include "analysis/pictures/report.h"
#include "base/config.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/limits.h"
#include "job.h"
#include "measured.h"
#include "place/job_file.h"
#include "topology/graph/path.h"
#include "topology/search/constants.h"
#include "topology/search/warnings.h"
#include "topology/sources/detect.h"
#include "topology/sources/rdma_ports.h"
#include "topology/sources/read.h"
#include "topology/sources/write.h"

namespace {

using namespace tutti;

enum Exit : int { ok = 0, refused = 1, bad_usage = 2 };

struct Options {
  std::string file;
  std::vector<int> gpus;
  std::string what_if;
  bool json = false;
  std::string dump;
  std::string svg;
  bool constants = false;
  bool measure = false;
  std::string machine_file;
  JobOptions job;
};

int fail(const Error& error) {
  std::fprintf(stderr, "tutti-topo: %s\n", error.text().c_str());
  return Exit::refused;
}

/// "gpus=0,1,4,5"
Result<std::vector<int>> chosen_gpus(const std::string& text, const topology::Topology& machine) {
  const auto refused = [&](const std::string& why) {
    return Error{.code = Code::invalid_argument, .what = "--what-if " + text + ": " + why};
  };
  if (!text.starts_with("gpus=")) return refused("write gpus= and numbers, as in gpus=0,1,4,5");
  std::vector<int> numbers;
  std::size_t at = 5;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.empty() || word.size() > 5 || word.find_first_not_of("0123456789") != std::string::npos)
      return refused("\"" + word + "\" is not a number");
    numbers.push_back(std::stoi(word));
    if (std::count(numbers.begin(), numbers.end(), numbers.back()) > 1) return refused("GPU " + word + " occurs twice");
    bool there = false;
    for (const int gpu : machine.gpus()) there = there || machine[gpu].index == numbers.back();
    if (!there) return refused("there is no GPU " + word);
    at = end + 1;
  }
  return numbers;
}

void print_constants(const topology::Topology& machine, const std::vector<topology::Constant>& measured) {
  std::vector<topology::Constant> all = topology::constants(machine);
  all.insert(all.end(), measured.begin(), measured.end());
  const std::string text = topology::constants_text(all);
  std::printf("\nConstants:\n%s", text.empty() ? "  none: no two devices here are connected\n" : text.c_str());
}

Result<topology::Topology> machine_of(const Options& options) {
  const auto config = Config::from_process();
  if (!config) return config.error();
  for (const std::string& line : config->warnings()) std::fprintf(stderr, "tutti-topo: %s\n", line.c_str());
  topology::Sources sources{.file = config->text("TUTTI_TOPO_FILE"), .dump = config->text("TUTTI_TOPO_DUMP_FILE")};
  if (!options.file.empty()) {
    sources.file = options.file;
    sources.kind = FileKind::stream;
  }
  auto machine = topology::detect(sources);
  if (!machine || options.what_if.empty()) return machine;
  const auto numbers = chosen_gpus(options.what_if, *machine);
  if (!numbers) return numbers.error();
  return topology::with_gpus(*machine, *numbers);
}

Result<topology::Job> job_of(const Options& options) {
  if (!options.job.file.empty()) return read_job(options.job.file);
  const auto machine = machine_of(options);
  if (!machine) return machine.error();
  return planned_job(options.job, *machine);
}

int show_job(const Options& options) {
  const auto job = job_of(options);
  if (!job) return fail(job.error());
  if (!options.svg.empty())
    if (const auto written = write_file(options.svg, topology::job_picture(*job), FileKind::stream); !written)
      return fail(written.error());
  std::fputs((options.json ? to_json(*job) : topology::job_text(*job)).c_str(), stdout);
  return Exit::ok;
}

int show(const Options& options) {
  auto machine = machine_of(options);
  if (!machine) return fail(machine.error());
  if (!options.dump.empty())
    if (const auto written = topology::write_machine(options.dump, *machine, FileKind::stream); !written)
      return fail(written.error());
  const topology::Search found = topology::search(*machine);
  if (!options.svg.empty())
    if (const auto written = write_file(options.svg, topology::picture(*machine, found), FileKind::stream); !written)
      return fail(written.error());
  std::vector<topology::Constant> measured;
  if (options.measure) {
    if (machine->origin != "live")
      return fail({.code = Code::invalid_argument, .what = "--measure: " + machine->origin + " is not this machine"});
    Measured places = measure_places(*machine);
    for (const std::string& line : places.undone) std::fprintf(stderr, "tutti-topo: %s\n", line.c_str());
    if (!options.machine_file.empty()) {
      if (places.machine_file.empty())
        return fail({.code = Code::system, .what = "--machine-file: not written, the machine could not be measured"});
      if (const auto written = write_file(options.machine_file, places.machine_file, FileKind::stream); !written)
        return fail(written.error());
    }
    measured = std::move(places.constants);
  }
  // What a recording says of its NICs is in the tree.
  const auto rdma = machine->origin == "live" ? topology::rdma_ports() : std::vector<topology::RdmaPort>();
  if (options.json) {
    std::fputs(topology::json(*machine, found, measured, rdma).c_str(), stdout);
    return Exit::ok;
  }
  std::fputs(topology::matrix_text(*machine).c_str(), stdout);
  std::printf("\nMachine (%s):\n\n%s\n%s", machine->origin.c_str(), topology::tree_text(*machine).c_str(),
              topology::search_text(found).c_str());
  if (!rdma.empty()) std::printf("\nRDMA ports:\n%s", topology::rdma_text(rdma).c_str());
  for (const std::string& line : topology::warnings(*machine)) std::printf("warning: %s\n", line.c_str());
  if (options.constants || options.measure) print_constants(*machine, measured);
  return Exit::ok;
}

void add_job_options(CLI::App& app, JobOptions& job) {
  CLI::Option* const planned = app.add_flag(
      "--job", job.planned, "A job on hosts like this machine or --file: where a communicator sees its ranks");
  app.add_option("--hosts", job.hosts, "How many hosts the job has [1]")
      ->needs(planned)
      ->check(CLI::Range(1, limits::ranks_max));
  app.add_option("--ranks-per-host", job.ranks_per_host, "How many ranks each host has [one per GPU or NUMA node]")
      ->needs(planned)
      ->check(CLI::Range(1, limits::ranks_max));
  app.add_option(
         "--order", job.order,
         "In which order ranks fill the hosts: block (host by host), round_robin, or all ranks as 0,2,1,3 [block]")
      ->needs(planned);
  app.add_option("--ring", job.ring,
                 "The order of the ring, instead of what a communicator finds: all ranks as 0,2,1,3, or number, as for "
                 "deterministic sums")
      ->needs(planned);
  CLI::Option* const file =
      app.add_option("--job-file", job.file, "The job that wrote this file, by TUTTI_JOB_DUMP_FILE")->excludes(planned);
  for (const char* const other : {"--measure", "--constants", "--dump"}) {
    planned->excludes(app.get_option(other));
    file->excludes(app.get_option(other));
  }
  for (const char* const other : {"--file", "--what-if"}) file->excludes(app.get_option(other));
}

}  // namespace

int main(int argc, char** argv) {
  const tutti::HeldStdio held;  // or a file that is written would get the number, and what is printed
  CLI::App app(
      "Prints the machine: how its GPUs and NICs are connected, and which rings and trees fit. Or a job: where its "
      "ranks "
      "are, and their order.",
      "tutti-topo");
  Options options;
  app.add_option("--file", options.file,
                 "A recorded machine instead of this one: XML of NCCL, RCCL or hwloc, text of nvidia-smi topo -m, or "
                 "synthetic:DESCRIPTION");
  app.add_option("--what-if", options.what_if, "As if only these GPUs were there: gpus=0,1,4,5");
  app.add_option("--dump", options.dump,
                 "Write the machine to this file: XML of hwloc if its name ends in .hwloc.xml, else of NCCL");
  app.add_option("--svg", options.svg, "Draw the machine, its links and rings, or the job, into this file");
  app.add_flag("--json", options.json, "Everything as one JSON object");
  app.add_flag("--constants", options.constants, "Also the constants used for this, with the source of each");
  app.add_flag("--measure", options.measure,
               "The same, with measurements of two CPUs of this machine, in and between NUMA nodes");
  app.add_option("--machine-file", options.machine_file,
                 "Write what --measure finds in the first NUMA node to this file, for TUTTI_MACHINE_FILE")
      ->needs("--measure");
  add_job_options(app, options.job);
  app.footer(
      "TUTTI_TOPO_FILE is --file, TUTTI_TOPO_DUMP_FILE is --dump of all GPUs.\n"
      "Exit status: 0 done, 1 refused or failed (why is on standard error), 2 wrong usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? Exit::ok : Exit::bad_usage;
  }
  return options.job.planned || !options.job.file.empty() ? show_job(options) : show(options);
}
