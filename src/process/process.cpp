#include "process/process.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/build_id.h"
#include "base/file.h"
#include "base/uncancelled.h"
#include "choice/select.h"
#include "net/digest.h"
#include "tune/choice_cache.h"
#include "tune/machine_file.h"
#include "tune/measure.h"

namespace tutti {
namespace {

/// A page that a fork wipes: the child reads zero where the parent wrote one. Each check costs one load and no system
/// call.
const volatile unsigned char* fork_mark() {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const at = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (::madvise(at, page, MADV_WIPEONFORK) != 0) {  // forbidden by a filter
    ::munmap(at, page);
    return nullptr;
  }
  *static_cast<unsigned char*>(at) = 1;
  return static_cast<unsigned char*>(at);
}

struct Made {
  Process* process = nullptr;
  std::optional<Error> failure;
  const volatile unsigned char* mark = nullptr;
  pid_t pid = ::getpid();

  /// Without a mark, each check costs a system call.
  bool forked() const { return mark != nullptr ? *mark == 0 : process != nullptr && ::getpid() != pid; }
  /// At the end of the process: its last messages must arrive, the starts whose root it is must complete, and its
  /// launcher must learn that this end is no crash.
  ~Made() {
    if (process == nullptr || forked()) return;
    const Uncancelled to_the_end;
    process->pending_closes.wait(process->system);
    process->launcher.leave();
    process->service.halt();
    process->driver_thread.halt();
  }
};

HostGroups groups_of_slurm() {
  const char* const address = std::getenv("SLURM_TOPOLOGY_ADDR");
  const char* const pattern = std::getenv("SLURM_TOPOLOGY_ADDR_PATTERN");
  return address == nullptr || pattern == nullptr ? HostGroups{} : host_groups_of_slurm(address, pattern);
}

/// Where the measured numbers are kept, and choices next to them; empty: nowhere.
std::string folder_of(const Config& config) {
  if (config.text("TUTTI_TUNE") == "off" || !config.text("TUTTI_MACHINE_FILE").empty()) return {};
  return cache_folder(config.text("TUTTI_CACHE_DIR"), std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
}

Result<std::unique_ptr<Tune>> tune_of(const Config& config) {
  if (const std::string& path = config.text("TUTTI_MACHINE_FILE"); !path.empty())
    return std::make_unique<Tune>(TUTTI_TRY(read_machine_file(path)));
  if (config.text("TUTTI_TUNE") == "off") return std::make_unique<Tune>();
  return std::make_unique<Tune>(folder_of(config), library_version,
                                Tune::Measure{.machine = measure, .hop_us = measure_hop});
}

EnvelopeStore store_in(const std::string& folder, Log& log) {
  const std::string build = build_id();
  if (folder.empty() || build.empty()) return {};
  const auto kept = std::make_shared<ChoiceCache>(folder, build);
  return {.find = [kept](std::string_view grounds) { return kept->find(grounds); },
          .keep =
              [kept, &log](std::string_view grounds, std::string_view text) {
                if (auto done = kept->keep(grounds, text); !done)
                  log.info(LogTopic::tune, "tune", "a choice is not kept: {}", done.error().text());
              }};
}

Made make() {
  // Before the static object made here is registered for destruction: libcrypto is then taken down after it, when the
  // service thread does not need it any more.
  prepare_digests();
  const Uncancelled whole;
  auto config = Config::from_process();
  if (!config) return {.failure = std::move(config).error()};
  if (auto known = check_algo_setting(config->text("TUTTI_ALGO")); !known) return {.failure = std::move(known).error()};
  auto tune = tune_of(*config);
  if (!tune) return {.failure = std::move(tune).error()};
  std::shared_ptr<const PlanFile> plan;
  if (const std::string& path = config->text("TUTTI_PLAN_FILE"); !path.empty()) {
    auto read = PlanFile::read(path);
    if (!read) return {.failure = std::move(read).error()};
    plan = *std::move(read);
  }
  // Never destroyed: the service thread may still run while the process exits.
  auto* const process = new Process(real_system(), *std::move(config), Service::Mode::threaded, *std::move(tune));
  process->choices.plan_file = std::move(plan);
  process->choices.envelopes.use(store_in(folder_of(process->config), process->log));
  if (process->choices.plan_file)
    process->log.info(LogTopic::init, "settings", "{}: {}", process->choices.plan_file->name(),
                      process->choices.plan_file->text());
  return {.process = process, .mark = fork_mark()};
}

/// It decides nothing, so it needs no measured numbers and no plan.
Made make_of_refused() {
  const Uncancelled whole;
  auto* const process = new Process(real_system(), Config::good_from_process(), Service::Mode::threaded);
  return {.process = process, .mark = fork_mark()};
}

/// Every call asks, so it costs no call of its own.
[[gnu::always_inline]] inline const Made& made_once() {
  static const Made made = make();
  return made;
}

}  // namespace

ProcessIdentity::ProcessIdentity() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof name - 1);
  host = name;
  std::istringstream(content_of("/proc/sys/kernel/random/boot_id")) >> boot_id;
}

Result<void> ProcessIdentity::make() {
  const std::lock_guard lock(mutex_);
  if (token != 0) return {};
  if (::getrandom(&token, sizeof token, 0) != sizeof token || ::getrandom(key.data(), key.size(), 0) != 32)
    return Error{.code = Code::system, .what = "read random bytes", .sys_errno = errno};
  token |= 1;
  return {};
}

Process* Process::of_refused() {
  if (!made_once().failure) return nullptr;
  static const Made made = make_of_refused();
  return made.forked() ? nullptr : made.process;
}

Result<Process*> Process::get() {
  const Made& made = made_once();
  if (made.failure) return *made.failure;
  if (made.forked())
    return invalid_usage("tutti was initialised before this process was forked; a forked child must not call it");
  return made.process;
}

Process::Process(System& system_in, Config config_in, Service::Mode mode, std::unique_ptr<Tune> tune)
    : system(system_in),
      config(std::move(config_in)),
      log(config),
      choices{.tune = std::move(tune)},
      machine{
          .locator = Locator({.machine = config.text("TUTTI_TOPO_FILE"),
                              .dump = config.text("TUTTI_TOPO_DUMP_FILE"),
                              .ring = config.text("TUTTI_GRAPH_FILE"),
                              .ring_dump = config.text("TUTTI_GRAPH_DUMP_FILE"),
                              .groups = config.text("TUTTI_TOPO_GROUPS"),
                              .groups_of_slurm = mode == Service::Mode::threaded ? groups_of_slurm() : HostGroups{}},
                             mode == Service::Mode::threaded),
          .cpu_map = CpuMap(),
          .places =
              Places(machine.cpu_map, log, mode == Service::Mode::threaded && config.text("TUTTI_AFFINITY") == "near")},
      memory(machine.places),
      service(system_in, mode, machine.places),
      driver_thread(system_in, mode, machine.places, "tutti-driver"),
      gpus(system_in, config),
      network(system_in, config, log, service) {
  for (const auto& warning : config.warnings()) log.warn("settings", "{}", warning);
  for (const auto& setting : config.set_by_user()) log.info(LogTopic::env, "settings", "{}", setting);
}

Result<void> Process::serve() {
  TUTTI_TRY(identity.make());
  return memory.serve(identity.key, service);
}

}  // namespace tutti
