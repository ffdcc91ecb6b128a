// tutti-plan import and export: conversion from and to foreign formats.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "analysis/formats/chakra.h"
#include "analysis/formats/goal.h"
#include "analysis/formats/msccl_export.h"
#include "analysis/formats/table.h"
#include "formats/plan_file.h"
#include "tools/tutti_plan/command.h"
#include "tools/tutti_plan/source.h"

namespace tutti::tool {
namespace {

struct ImportOptions {
  std::string file;
  std::string collective;
  int root = 0;
};

int import(const ImportOptions& options) {
  const auto imported = import_file(options.file, options.root);
  if (!imported) return fail(imported.error());
  const Schedule& schedule = imported->schedule;
  if (!options.collective.empty()) {
    const auto wanted = collective_of(options.collective);
    if (!wanted) return fail(wanted.error());
    if (*wanted != schedule.collective())
      return fail({.code = Code::invalid_argument,
                   .what = fmt::format("{}: is a plan of {}, not of {}", options.file, name(schedule.collective()),
                                       name(*wanted))});
  }
  auto meaning = formats::verify(*imported);
  if (!meaning) return fail(std::move(meaning).error().during(options.file));
  return put("-", fmt::format("{}: {}: understood and proven\n", imported->name, formats::summary(schedule)));
}

struct ExportOptions {
  Source source;
  std::string format;
  std::string output = "-";
  formats::TrafficSize size;
};

int export_traces(const Found& found, const ExportOptions& options) {
  const auto files = formats::export_chakra(found.schedule, options.size, found.title);
  if (!files) return fail(files.error());
  for (std::size_t rank = 0; rank < files->size(); ++rank)
    if (const int status = put(fmt::format("{}.{}.et", options.output, rank), (*files)[rank]); status != Exit::ok)
      return status;
  return Exit::ok;
}

int export_plan(const ExportOptions& options) {
  if (options.format == "chakra" && options.output == "-") {
    fmt::print(stderr, "tutti-plan: chakra writes a file per rank: give the beginning of their names with -o\n");
    return Exit::bad_usage;
  }
  const auto found = find(options.source);
  if (!found) return fail(found.error());
  if (options.format == "chakra") return export_traces(*found, options);
  const auto text = options.format == "msccl" ? formats::export_msccl(found->schedule, found->title)
                                              : formats::export_goal(found->schedule, options.size);
  return text ? put(options.output, *text) : fail(text.error());
}

}  // namespace

void add_translate(CLI::App& app, int& status) {
  auto in = std::make_shared<ImportOptions>();
  CLI::App* const reader = app.add_subcommand("import", "Reads and proves a plan: MSCCL XML or MSCCL++ JSON");
  reader->add_option("file", in->file, "The plan")->required();
  reader->add_option("--collective", in->collective, "Refuse plans of other collectives");
  reader->add_option("--root", in->root, "Root of a broadcast or reduce, which the formats do not contain [0]")
      ->check(CLI::NonNegativeNumber);
  reader->final_callback([in, &status] { status = import(*in); });

  auto out = std::make_shared<ExportOptions>();
  CLI::App* const writer = app.add_subcommand("export", "Writes a schedule for other programs");
  add_source(*writer, out->source);
  writer
      ->add_option("--format", out->format,
                   "msccl (XML), goal (LogGOPSim) or chakra (ASTRA-sim: FILE.0.et, FILE.1.et, …)")
      ->required()
      ->check(CLI::IsMember({"msccl", "goal", "chakra"}));
  writer->add_option("-o,--output", out->output, "File to write [standard output]");
  writer
      ->add_option("--bytes", out->size.bytes, "goal, chakra: size of the call, the largest buffer of a rank [1048576]")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 40));
  writer->add_option("--reduce-ns", out->size.reduce_ns_per_byte, "goal, chakra: nanoseconds per byte of a sum [0]")
      ->check(CLI::Range(0.0, 1e6));
  writer
      ->add_option("--copy-ns", out->size.copy_ns_per_byte,
                   "goal, chakra: nanoseconds per byte copied inside a rank [0]")
      ->check(CLI::Range(0.0, 1e6));
  writer->final_callback([out, &status] { status = export_plan(*out); });
}

}  // namespace tutti::tool
